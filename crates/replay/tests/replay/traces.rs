//! Trace files: what is written is read, and no bytes whatever do harm.

use tanada_placement::{
    Cause, End, ErrorKind, Fingerprint, Footprint, IoKind, QueryId, Record, Recorder, Trace, TraceIo,
    TraceQuery, TraceReader,
};
use tanada_replay::synthetic::{Synthetic, nine_queries};
use tanada_replay::{Pace, SimulationOptions, simulate};

use crate::small;

fn file() -> (Trace, Vec<u8>) {
    let trace = small();
    let file = trace.write(Vec::new()).unwrap();
    (trace, file)
}

fn read(bytes: &[u8]) -> Result<(Trace, End), tanada_placement::Error> {
    TraceReader::new(bytes)?.read()
}

#[test]
fn written_traces_are_read_back() {
    let (trace, file) = file();
    println!("{} I/Os in {} bytes", trace.ios(), file.len());
    assert_eq!(read(&file).unwrap(), (trace.clone(), End::Finished));
    assert!((file.len() as u64) < 16 * trace.ios());
}

/// A trace of one query of four reads, each telling how many before it is the one that it waited for.
fn chained(after: [u32; 4]) -> Trace {
    let mut recorder = Recorder::new();
    let object = recorder.object("t", 4 << 20);
    let footprint = Footprint::default();
    let query = recorder.begins(TraceQuery { name: "Q".to_owned(), fingerprint: Fingerprint(1), footprint });
    for (no, after) in after.into_iter().enumerate() {
        recorder.io(TraceIo {
            offset: (no as u64) << 20,
            bytes: 16384,
            think_ns: 0,
            query,
            object,
            cause: Cause(0),
            kind: IoKind::Read,
            is_sequential: false,
            after,
        });
    }
    recorder.ends(query);
    recorder.finish()
}

#[test]
fn recorded_dependencies_are_read_back_and_obeyed() {
    let seconds = |after: [u32; 4]| {
        let trace = chained(after);
        let file = trace.write(Vec::new()).unwrap();
        assert_eq!(read(&file).unwrap().0, trace);
        let pace = Pace::OutOfOrder { depth: 4 };
        let options = SimulationOptions { pace, ..SimulationOptions::new("off", 0.0) };
        let outcome = simulate(&trace, None, &options).unwrap();
        assert_eq!((outcome.ios, outcome.queries[0].ios), (4, 4));
        outcome.total_s
    };
    let (free, one_after_the_other, pair) = (seconds([0; 4]), seconds([0, 1, 1, 1]), seconds([0, 1, 0, 1]));
    assert!(one_after_the_other > 2.0 * free, "{one_after_the_other} {free}");
    assert!(free < pair && pair < one_after_the_other, "{free} {pair} {one_after_the_other}");
    // What is said to wait for an I/O that is not there waits for none.
    assert_eq!(seconds([7, 9, 9, 9]), free);
}

#[test]
fn a_read_that_waits_for_one_of_another_client_gets_its_turn() {
    let mut recorder = Recorder::new();
    let object = recorder.object("t", 8 << 20);
    let query = |name: &str| TraceQuery {
        name: name.to_owned(),
        fingerprint: Fingerprint(1),
        footprint: Footprint::default(),
    };
    let io = |query, no: u64, after| TraceIo {
        offset: no << 20,
        bytes: 16384,
        think_ns: 0,
        query,
        object,
        cause: Cause(0),
        kind: IoKind::Read,
        is_sequential: false,
        after,
    };
    let first = recorder.begins(query("first"));
    (0..2).for_each(|no| recorder.io(io(first, no, 0)));
    recorder.ends(first);
    let second = recorder.begins(query("second"));
    // Told as the first query's, and as one's that has not begun.
    (2..5).for_each(|no| recorder.io(io(first, no, 1)));
    (5..7).for_each(|no| recorder.io(io(QueryId(2), no, 1)));
    recorder.ends(second);
    let third = recorder.begins(query("third"));
    recorder.io(io(third, 7, 1));
    recorder.ends(third);
    let trace = recorder.finish();
    for clients in 1..4 {
        let pace = Pace::OutOfOrder { depth: 4 };
        let options = SimulationOptions { pace, clients, ..SimulationOptions::new("off", 0.0) };
        let outcome = simulate(&trace, None, &options).unwrap();
        assert_eq!((outcome.ios, outcome.queries.len()), (8, 3), "{clients} clients");
        assert!(outcome.queries.iter().all(|query| query.seconds > 0.0), "{outcome:?}");
    }
}

#[test]
fn a_trace_of_the_first_version_is_read() {
    let (trace, mut file) = file();
    file[9] = 1;
    let header = crc32c_of(&file[..28]);
    file[28..32].copy_from_slice(&header.to_be_bytes());
    assert_eq!(read(&file).unwrap().0, trace);
}

#[test]
fn a_torn_tail_of_a_trace_loses_only_its_events() {
    let (trace, file) = file();
    let (mut torn, mut stopped) = (0, 0);
    for cut in (32..file.len()).step_by(997) {
        let (part, end) = read(&file[..cut]).unwrap();
        assert!(part.events().len() <= trace.events().len());
        assert_eq!(part.events(), &trace.events()[..part.events().len()]);
        match end {
            End::Torn { bytes } => torn += u64::from(bytes > 0),
            End::Stopped => stopped += 1,
            End::Finished => panic!("{cut} bytes of {}", file.len()),
        }
    }
    assert!(torn > 0 && stopped < torn);
    // What a file system left as zeros is a torn tail, too.
    let mut zeros = file[..file.len() - 10].to_vec();
    zeros.extend([0; 5000]);
    assert!(matches!(read(&zeros).unwrap().1, End::Torn { .. }));
}

#[test]
fn trailing_bytes_after_a_trace_are_an_error() {
    let (trace, file) = file();
    for more in [&file[..], b"more"] {
        let error = read(&[&file[..], more].concat()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupted);
        assert!(error.to_string().contains(&format!("ended at byte {}", file.len())), "{error}");
    }
    // Zeros are what a file system leaves.
    assert_eq!(read(&[&file[..], &[0; 5000]].concat()).unwrap(), (trace, End::Finished));
}

#[test]
fn a_flipped_byte_is_damage_or_a_torn_tail_and_never_another_trace() {
    let trace = nine_queries(&Synthetic { scale: 0.3, ..Synthetic::default() });
    let file = trace.write(Vec::new()).unwrap();
    assert!(file.windows(4).filter(|bytes| *bytes == b"TBLK").count() > 3, "more than one block");
    let last_block = (0..file.len() - 4).rev().find(|at| file[*at..].starts_with(b"TBLK")).unwrap();
    for at in (0..file.len()).step_by(file.len() / 97).chain(last_block..file.len().min(last_block + 60)) {
        let mut bytes = file.clone();
        bytes[at] ^= 0x40;
        match read(&bytes) {
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupted, "{at}: {error}"),
            Ok((part, End::Torn { .. })) => {
                assert!(at >= last_block, "{at} of {last_block}");
                assert_eq!(part.events(), &trace.events()[..part.events().len()]);
            }
            Ok((_, end)) => panic!("byte {at} flipped: {end:?}"),
        }
    }
}

#[test]
fn files_that_are_not_traces_are_refused() {
    for bytes in [&b""[..], b"TANADATR", b"hello, this is no trace, however long it may be"] {
        assert_eq!(read(bytes).unwrap_err().kind(), ErrorKind::Corrupted);
    }
    let (_, mut file) = file();
    file[9] = 3;
    let header = crc32c_of(&file[..28]);
    file[28..32].copy_from_slice(&header.to_be_bytes());
    assert!(read(&file).unwrap_err().to_string().contains("version 3"));
}

/// A replay waited for its end, and ended without a word.
#[test]
fn an_io_of_no_bytes_is_refused() {
    let mut trace = small();
    let io = trace.records().find_map(|record| match record {
        Record::Io(io) => Some(io),
        _ => None,
    });
    let error = trace.push(Record::Io(TraceIo { bytes: 0, ..io.unwrap() })).unwrap_err();
    assert!(error.to_string().contains("an I/O or a page of 0 bytes at offset"), "{error}");
}

/// Bit by bit, so that the test does not lean on what it tests.
pub(crate) fn crc32c_of(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 },
        )
    })
}

/// A block that is whole, of records that are not.
fn block(raw: &[u8], records: u32) -> Vec<u8> {
    let mut file = Vec::from(*b"TANADATR");
    file.extend([0, 1]);
    file.extend([0; 18]);
    file.extend(crc32c_of(&file).to_be_bytes());
    // A zstd frame with one raw block.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    frame.extend((raw.len() as u32).to_le_bytes());
    frame.extend(&((raw.len() as u32) << 3 | 1).to_le_bytes()[..3]);
    frame.extend(raw);
    let mut header = Vec::from(*b"TBLK");
    for number in [frame.len() as u32, raw.len() as u32, records] {
        header.extend(number.to_be_bytes());
    }
    let checksum = crc32c_of(&[&header[..], &frame[..]].concat());
    header.extend(checksum.to_be_bytes());
    [file, header, frame].concat()
}

#[test]
fn hostile_records_are_errors() {
    let object = [1, 1, b'a', 5];
    assert_eq!(read(&block(&object, 1)).unwrap().0.objects()[0].bytes, 5);
    let hostile: [&[u8]; 9] = [
        &[99],                                                                                     // no record
        &[1, 0xff, 0xff, 0xff, 0xff, 0x0f],                // a name of 4 GiB
        &[3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0x03], // 65,535 accesses in no bytes
        &[16, 0, 7, 0, 0, 1, 0],                           // an object that is not there
        &[4, 3],                                           // a query that never began
        &[1, 2, 0xff, 0xfe, 0],                            // a name that is no text
        &[1, 1, b'a', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], // 70 bits
        &[1, 1, b'a', 0, 16, 0, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 1, 0], // far away
        &[5, 0],                                           // the end of the block
    ];
    for raw in hostile {
        let records = if raw.starts_with(&[1, 1, b'a', 0, 16]) { 2 } else { 1 };
        let error = read(&block(raw, records)).map(|_| format!("{raw:?}")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupted, "{raw:?}: {error}");
    }
}

#[test]
fn random_blocks_never_panic() {
    let mut random = tanada_base::SplitMix64::new(5);
    for _ in 0..20_000 {
        let mut raw = vec![0; 1 + random.below(60) as usize];
        random.fill(&mut raw);
        // Likely tags more often than chance has them.
        raw[0] = [1, 2, 3, 4, 5, 6, 16, 20, 27][random.below(9) as usize];
        let _ = read(&block(&raw, 1 + random.below(4) as u32));
    }
}
