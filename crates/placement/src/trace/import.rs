//! Logs of other tools as traces: the block traces of MSR Cambridge, and fio's I/O logs.
//!
//! They know of no queries, so all of a log is one. What a log tells of time becomes the time between an I/O's
//! completion and the next one. I/Os of no bytes are left out. Whether an I/O is sequential is told by whether it
//! begins where one of the last few of its object ended. Logs that gzip or zstd has compressed, as such traces are
//! published, are read as they are.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use super::{Record, Trace, TraceIo, TraceQuery};
use crate::event::IoKind;
use crate::footprint::{Cause, Fingerprint, Footprint, QueryId};
use crate::layout::ObjectNo;
use crate::{Error, Result};

/// Bytes of a line.
const LONGEST_LINE: u64 = 64 << 10;

/// How logs begin that are decompressed while they are read.
const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// How other compressed files begin, and what can decompress them.
const COMPRESSED: [(&[u8], &str); 3] =
    [(b"\xfd7zXZ\x00", "unxz"), (b"BZh", "bunzip2"), (b"PK\x03\x04", "unzip")];

/// Bytes of the longest of these beginnings.
const LONGEST_MARK: u64 = 6;

/// fio takes no notice of shorter waits.
const LEAST_WAIT_US: u64 = 100;

const FIO_ACTIONS: [&str; 9] = ["read", "write", "wait", "add", "open", "close", "trim", "sync", "datasync"];

/// Streams of an object that are told apart.
const STREAMS: usize = 32;

/// A log of MSR Cambridge's block traces: `timestamp,host,disk,type,offset,size,response time`, times in tenths of
/// microseconds. Each disk is an object.
///
/// ```
/// let log = "128166372003061629,usr,0,Read,7014609920,24576,41286\n\
///            128166372016382155,usr,0,Write,1317441536,8192,1963\n";
/// let trace = tanada_placement::import::msr(log.as_bytes(), "usr")?;
/// assert_eq!((trace.ios(), trace.objects()[0].name.as_str()), (2, "usr.0"));
/// # Ok::<(), tanada_placement::Error>(())
/// ```
///
/// # Errors
/// With the number of the line that is not understood.
pub fn msr(log: impl BufRead, name: &str) -> Result<Trace> {
    let mut import = Import::new(name)?;
    // When the I/O before was done.
    let mut idle_since: Option<u64> = None;
    each_line(log, |no, line| {
        if no == 1 && line.to_ascii_lowercase().starts_with("timestamp") {
            return Ok(());
        }
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [timestamp, host, disk, kind, offset, size, response] = fields[..] else {
            return Err(format!("{} fields, where an MSR trace has 7", fields.len()));
        };
        let timestamp: u64 = number(timestamp, "the timestamp")?;
        let response: u64 = number(response, "the response time")?;
        let kind = match kind.to_ascii_lowercase().as_str() {
            "read" => IoKind::Read,
            "write" => IoKind::Write,
            other => return Err(format!("the type {other:?} is neither Read nor Write")),
        };
        let (offset, size) = (number(offset, "the offset")?, number(size, "the size")?);
        let idle = idle_since.map_or(0, |since| timestamp.saturating_sub(since));
        idle_since = Some(timestamp.saturating_add(response));
        import.io(&format!("{host}.{disk}"), kind, (offset, size), idle.saturating_mul(100))
    })?;
    import.finish()
}

/// fio's I/O log, version 2 or 3 (`write_iolog=`), times in microseconds. Each file is an object. What is no read or
/// write is left out. Of version 2 the waits count, each from the one before; of version 3 the differences of
/// timestamps.
///
/// ```
/// let log = "fio version 3 iolog\n3000143 /f read 0 4096\n3000243 /f read 4096 4096\n";
/// assert_eq!(tanada_placement::import::fio(log.as_bytes(), "f")?.ios(), 2);
/// # Ok::<(), tanada_placement::Error>(())
/// ```
///
/// # Errors
/// With the number of the line that is not understood.
pub fn fio(log: impl BufRead, name: &str) -> Result<Trace> {
    let mut import = Import::new(name)?;
    let mut version = 0;
    // Since the I/O before; the last timestamp of version 3.
    let (mut waited_us, mut before_us) = (0u64, None);
    each_line(log, |_, line| {
        if version == 0 {
            version = match line {
                "fio version 2 iolog" => 2,
                "fio version 3 iolog" => 3,
                _ => return Err("it should be \"fio version 2 iolog\" or \"fio version 3 iolog\"".to_owned()),
            };
            return Ok(());
        }
        let mut words: Vec<&str> = line.split_ascii_whitespace().collect();
        if version == 3 {
            let now_us: u64 = number(words.remove(0), "the timestamp")?;
            waited_us = waited_us.saturating_add(now_us.saturating_sub(before_us.unwrap_or(now_us)));
            before_us = Some(now_us);
        }
        // The name of a file may have spaces.
        let action = words.iter().skip(1).rposition(|word| FIO_ACTIONS.contains(word));
        let Some(action) = action.map(|before| before + 1) else {
            return Err(match words[..] {
                [] => "a line without a file".to_owned(),
                [_] => "a line without an action".to_owned(),
                [_, action, ..] => format!("fio has no action {action:?}"),
            });
        };
        let file = words[..action].join(" ");
        let mut fields = words[action + 1..].iter().copied();
        let mut field = |what| number::<u64>(fields.next().unwrap_or_default(), what);
        let kind = match words[action] {
            "read" => IoKind::Read,
            "write" => IoKind::Write,
            "wait" => {
                let us = field("the time to wait")?;
                if us >= LEAST_WAIT_US {
                    waited_us = waited_us.saturating_add(us);
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        let extent = (field("the offset")?, field("the length")?);
        import.io(&file, kind, extent, std::mem::take(&mut waited_us).saturating_mul(1000))
    })?;
    if version == 0 {
        return Err(Error::invalid("the log is empty; a fio log begins with its version"));
    }
    import.finish()
}

/// Calls `each` with every line of a log that may be compressed; its complaint names the line.
fn each_line(mut log: impl BufRead, each: impl FnMut(usize, &str) -> Result<(), String>) -> Result<()> {
    let unreadable = |error| Error::io("reading the log", error);
    // A pipe may give its first byte alone.
    let mut begin = Vec::new();
    (&mut log).take(LONGEST_MARK).read_to_end(&mut begin).map_err(unreadable)?;
    if let Some((_, program)) = COMPRESSED.iter().find(|(mark, _)| begin.starts_with(mark)) {
        return Err(Error::invalid(format!("the log is compressed: decompress it first, with {program}")));
    }
    let (is_gzip, is_zstd) = (begin.starts_with(GZIP), begin.starts_with(ZSTD));
    let log = begin.as_slice().chain(log);
    if is_gzip {
        each_line_of(BufReader::new(MultiGzDecoder::new(log)), each)
    } else if is_zstd {
        each_line_of(BufReader::new(zstd::Decoder::with_buffer(log).map_err(unreadable)?), each)
    } else {
        each_line_of(log, each)
    }
}

fn each_line_of(
    mut log: impl BufRead,
    mut each: impl FnMut(usize, &str) -> Result<(), String>,
) -> Result<()> {
    let mut bytes = Vec::new();
    for no in 1.. {
        bytes.clear();
        let read = (&mut log).take(LONGEST_LINE + 1).read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| Error::io(&format!("reading the log from line {no} on"), error))?;
        if read == 0 {
            break;
        }
        let wrong = |why: &str| Error::invalid(format!("line {no} of the log: {why}"));
        if read as u64 > LONGEST_LINE {
            return Err(wrong("it is longer than 64 KiB"));
        }
        let line = std::str::from_utf8(&bytes).map_err(|_| wrong("it is no text"))?;
        // Some editors begin a text with a byte order mark.
        let line = if no == 1 { line.trim_start_matches('\u{feff}') } else { line }.trim();
        if !line.is_empty() {
            each(no, line).map_err(|why| wrong(&why))?;
        }
    }
    Ok(())
}

fn number<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{what} {text:?} is no number that fits"))
}

struct Import {
    trace: Trace,
    objects: HashMap<String, ObjectNo>,
    ends: Vec<VecDeque<u64>>,
}

impl Import {
    fn new(name: &str) -> Result<Import> {
        let mut trace = Trace::default();
        let fingerprint = Fingerprint(crc32c::crc32c(name.as_bytes()).into());
        let query = TraceQuery { name: name.to_owned(), fingerprint, footprint: Footprint::default() };
        trace.push(Record::Begins(query))?;
        Ok(Import { trace, objects: HashMap::new(), ends: Vec::new() })
    }

    fn io(
        &mut self,
        object: &str,
        kind: IoKind,
        (offset, size): (u64, u64),
        think_ns: u64,
    ) -> Result<(), String> {
        let bytes = u32::try_from(size).map_err(|_| format!("an I/O of {size} bytes is none"))?;
        if bytes == 0 {
            return Ok(());
        }
        let object = match self.objects.get(object) {
            Some(no) => *no,
            None => {
                let no = ObjectNo(self.objects.len() as u32);
                let record = Record::Object { name: object.to_owned(), bytes: 0 };
                self.trace.push(record).map_err(|error| error.to_string())?;
                self.objects.insert(object.to_owned(), no);
                self.ends.push(VecDeque::new());
                no
            }
        };
        let ends = &mut self.ends[object.0 as usize];
        let stream = ends.iter().position(|end| *end == offset);
        stream.map(|stream| ends.remove(stream));
        ends.push_back(offset.saturating_add(size));
        if ends.len() > STREAMS {
            ends.pop_front();
        }
        let io = TraceIo {
            offset,
            bytes,
            think_ns: u32::try_from(think_ns).unwrap_or(u32::MAX),
            query: QueryId(0),
            object,
            cause: Cause(0),
            kind,
            is_sequential: stream.is_some(),
            after: 0,
        };
        self.trace.push(Record::Io(io)).map_err(|error| error.to_string())
    }

    fn finish(mut self) -> Result<Trace> {
        self.trace.push(Record::Ends(QueryId(0)))?;
        Ok(self.trace)
    }
}
