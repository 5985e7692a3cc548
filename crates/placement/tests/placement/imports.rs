//! Logs of other tools.

use std::io::{BufReader, Read, Write};

use tanada_placement::{ErrorKind, IoKind, TraceEvent, TraceIo, import};

fn ios(trace: &tanada_placement::Trace) -> Vec<TraceIo> {
    let io = |event: &TraceEvent| if let TraceEvent::Io(io) = event { Some(*io) } else { None };
    trace.events().iter().filter_map(io).collect()
}

#[test]
fn a_log_of_msr_keeps_gaps_streams_and_disks() {
    let log = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n\
               1000,usr,0,Read,8192,4096,100\n\
               1200,usr,0,Read,12288,4096,50\n\
               1200,usr,1,Write,0,512,10\n";
    let trace = import::msr(log.as_bytes(), "usr").unwrap();
    let names: Vec<_> = trace.objects().iter().map(|object| (object.name.as_str(), object.bytes)).collect();
    assert_eq!(names, [("usr.0", 16384), ("usr.1", 512)]);
    let ios = ios(&trace);
    let told: Vec<_> = ios.iter().map(|io| (io.offset, io.think_ns, io.is_sequential)).collect();
    assert_eq!(told, [(8192, 0, false), (12288, 10_000, true), (0, 0, false)]);
    assert_eq!(ios[2].kind, IoKind::Write);
}

#[test]
fn a_log_of_msr_that_is_wrong_names_the_line() {
    let good = "1,h,0,Read,0,512,1\n";
    for (line, part) in [
        ("1,h,0,Read,0,512", "6 fields"),
        ("x,h,0,Read,0,512,1", "timestamp \"x\""),
        ("1,h,0,Erase,0,512,1", "neither Read nor Write"),
        ("1,h,0,Read,-5,512,1", "offset"),
        ("1,h,0,Read,0,99999999999,1", "99999999999"),
        ("1,h,0,Read,18446744073709551615,512,1", "beyond"),
    ] {
        let error = import::msr(format!("{good}{line}\n").as_bytes(), "h").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(text.starts_with("line 2 of the log: ") && text.contains(part), "{text}");
    }
    let long = "1".repeat(100_000);
    assert!(import::msr(long.as_bytes(), "h").unwrap_err().to_string().contains("longer than 64 KiB"));
    assert!(import::msr(&[0xff, 0xfe, b'\n'][..], "h").unwrap_err().to_string().contains("line 1"));
}

fn gzipped(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// Gives one byte at a time.
struct Pipe<'a>(&'a [u8]);

impl Read for Pipe<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let len = to.len().min(1);
        self.0.read(&mut to[..len])
    }
}

/// Such logs are published compressed, and had to be decompressed first.
#[test]
fn compressed_logs_are_read() {
    let log = "1,h,0,Read,0,512,1\n9,h,0,Write,512,512,1\n";
    let plain = ios(&import::msr(log.as_bytes(), "h").unwrap());
    assert_eq!(plain.len(), 2);
    let (first, second) = log.split_at(19);
    let members = [gzipped(first), gzipped(second)].concat();
    for compressed in [gzipped(log), members, zstd::encode_all(log.as_bytes(), 1).unwrap()] {
        assert_eq!(ios(&import::msr(&compressed[..], "h").unwrap()), plain);
        assert_eq!(ios(&import::msr(BufReader::new(Pipe(&compressed)), "h").unwrap()), plain);
    }
    let fio = "fio version 2 iolog\n/a read 0 4096\n";
    assert_eq!(import::fio(&gzipped(fio)[..], "a").unwrap().ios(), 1);
}

#[test]
fn a_compressed_log_that_is_cut_off_or_damaged_is_an_error() {
    let log: String =
        (0..20_000u64).map(|no| format!("{no},h,0,Read,{},512,1\n", no * no % 7919 * 512)).collect();
    for compressed in [gzipped(&log), zstd::encode_all(log.as_bytes(), 1).unwrap()] {
        let (len, mut damaged) = (compressed.len(), compressed.clone());
        damaged[len / 2..len / 2 + 64].fill(0x5a);
        for wrong in [&compressed[..len / 2], &compressed[..len - 1], &compressed[..10], &damaged[..]] {
            let error = import::msr(wrong, "h").unwrap_err();
            assert!(error.to_string().contains("line "), "{error}");
        }
    }
    // What is wrong with the text inside names its line.
    let error = import::msr(&gzipped("1,h,0,Read,0,512,1\nx\n")[..], "h").unwrap_err();
    assert!(error.to_string().starts_with("line 2 of the log: 1 fields"), "{error}");
}

#[test]
fn a_log_that_others_have_compressed_is_called_that() {
    for (begins, program) in
        [(&b"\xfd7zXZ\x00\x00"[..], "unxz"), (b"BZh91AY&SY", "bunzip2"), (b"PK\x03\x04\x14", "unzip")]
    {
        for read in [|log: &[u8]| import::msr(log, "h"), |log: &[u8]| import::fio(log, "h")] {
            let error = read(&[begins, &[0x80; 100_000]].concat()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            let text = error.to_string();
            assert_eq!(text, format!("the log is compressed: decompress it first, with {program}"));
        }
    }
}

#[test]
fn fio_logs_of_both_versions_are_read() {
    let log = "fio version 2 iolog\n/a add\n/a open\n/a read 0 4096\n/a wait 250\n/a read 4096 4096\n/a sync 0 0\n\
               /a trim 0 4096\n/a write 65536 512\n/a close\n";
    let two = import::fio(log.as_bytes(), "a").unwrap();
    let told: Vec<_> = ios(&two).iter().map(|io| (io.offset, io.think_ns, io.is_sequential)).collect();
    assert_eq!(told, [(0, 0, false), (4096, 250_000, true), (65536, 0, false)]);
    let log = "fio version 3 iolog\n3000100 /f add\n3000105 /f open\n3000143 /f read 0 4096\n3000243 /f read 4096 4096\n\
               3000300 /f sync 0 0\n3001243 /g write 0 512\n3001300 /f close\n";
    let three = import::fio(log.as_bytes(), "f").unwrap();
    let told: Vec<_> = ios(&three).iter().map(|io| (io.object.0, io.think_ns, io.is_sequential)).collect();
    assert_eq!(told, [(0, 43_000, false), (0, 100_000, true), (1, 1_000_000, false)]);
}

#[test]
fn files_with_spaces_byte_order_marks_and_empty_ios_are_read() {
    let log = "\u{feff}fio version 2 iolog\n/a read me add\n/a read me read 0 4096\n/b c wait 250\n/b c write 0 512\n\
               /b c write 512 0\n";
    let trace = import::fio(log.as_bytes(), "a").unwrap();
    let names: Vec<_> = trace.objects().iter().map(|object| object.name.as_str()).collect();
    assert_eq!(names, ["/a read me", "/b c"]);
    let told: Vec<_> = ios(&trace).iter().map(|io| (io.bytes, io.think_ns)).collect();
    assert_eq!(told, [(4096, 0), (512, 250_000)]);
    let log = "\u{feff}Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n1,h,0,Read,0,0,1\n2,h,0,Read,0,512,1\n";
    assert_eq!(ios(&import::msr(log.as_bytes(), "h").unwrap()).len(), 1);
}

#[test]
fn waits_of_a_fio_log_add_up_and_short_ones_are_none() {
    let log = "fio version 2 iolog\n/a wait 250\n/a wait 99\n/a wait 750\n/a read 0 4096\n/a wait 99\n/a read 0 4096\n";
    let trace = import::fio(log.as_bytes(), "a").unwrap();
    let told: Vec<_> = ios(&trace).iter().map(|io| io.think_ns).collect();
    assert_eq!(told, [1_000_000, 0]);
}

#[test]
fn times_of_a_fio_log_that_no_trace_has_are_the_longest() {
    for log in [
        "fio version 2 iolog\n/a wait 18446744073709551615\n/a wait 18446744073709551615\n/a read 0 512\n",
        "fio version 3 iolog\n0 /a open\n18446744073709551615 /a read 0 512\n",
    ] {
        let trace = import::fio(log.as_bytes(), "a").unwrap();
        assert_eq!(ios(&trace)[0].think_ns, u32::MAX, "{log}");
    }
}

#[test]
fn a_fio_log_that_is_wrong_names_the_line() {
    for (log, part) in [
        ("", "the log is empty"),
        ("fio version 1 iolog\n", "line 1"),
        ("fio version 2 iolog\n/a read 0\n", "line 2 of the log: the length"),
        ("fio version 2 iolog\n/a leap 0 1\n", "no action \"leap\""),
        ("fio version 2 iolog\n/a\n", "without an action"),
        ("fio version 3 iolog\n/a read 0 1\n", "the timestamp \"/a\""),
    ] {
        let text = import::fio(log.as_bytes(), "a").unwrap_err().to_string();
        assert!(text.contains(part), "{text}");
    }
}
