//! `tanada kv put`, `delete` and `load`.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use tanada_kv::{
    Batch, Database, DatabaseSettings, Durability, LONGEST_KEY, LONGEST_VALUE, Store, WriteOptions,
};

use super::bytes::parsed;
use super::settings::WriteArguments;
use super::{Place, closing};
use crate::failure::{Failure, Outcome};
use crate::output::{count, say, size};

/// Arguments of `tanada kv put`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada kv vol put user:17 '{\"name\": \"Aiko\"}'
  tanada kv vol put session:4 open --ttl 3600
  tanada kv vol put page:1 - --compression zstd < page.html")]
pub struct PutArguments {
    /// The key
    key: String,
    /// The value; - is stdin
    value: String,
    #[command(flatten)]
    write: WriteArguments,
}

pub(super) async fn put(place: &Place, arguments: PutArguments) -> Outcome {
    let key = parsed(&arguments.key, place.hex)?.into_owned();
    let value = if arguments.value == "-" {
        value_of(std::io::stdin().lock(), place.hex)?
    } else {
        parsed(&arguments.value, place.hex)?.into_owned()
    };
    let is_there = place.is_there();
    let database = place.write_or_new(&DatabaseSettings::default()).await?;
    let written = async {
        let store = place.store_or_new(&database).await?;
        let options = WriteOptions { durability: Some(Durability::Sync), ..arguments.write.options() };
        Ok(store.put_with(&key, &value, &options).await?)
    };
    let written = written.await;
    let written = closing(&database, written).await;
    place.with_all_or_nothing(is_there, written).await
}

/// The value that is read, no more of it than could be written.
fn value_of(input: impl Read, hex: bool) -> Outcome<Vec<u8>> {
    let failed =
        |why: &dyn std::fmt::Display| Failure::failed(format!("cannot read the value from stdin: {why}"));
    let longest = text_bytes(LONGEST_VALUE, hex);
    let mut read = Vec::new();
    input.take(longest + 1).read_to_end(&mut read).map_err(|error| failed(&error))?;
    if read.len() as u64 > longest {
        return Err(failed(&format_args!("it is longer than {LONGEST_VALUE} bytes")));
    }
    if !hex {
        return Ok(read);
    }
    let text = std::str::from_utf8(&read).map_err(|_| failed(&"these are no hexadecimal digits"))?;
    Ok(parsed(text.trim_end(), true)?.into_owned())
}

/// Bytes that so many take in what is read: as digits two each, and the end of their line.
fn text_bytes(bytes: usize, hex: bool) -> u64 {
    if hex { 2 * bytes as u64 + 2 } else { bytes as u64 }
}

/// Arguments of `tanada kv delete`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada kv vol delete user:17
  tanada kv vol delete --prefix user:
  tanada kv vol delete --from 2025-01 --to 2025-07       # the second one stays")]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["key", "prefix", "from", "to"]))]
pub struct DeleteArguments {
    /// The key
    #[arg(conflicts_with_all = ["prefix", "from", "to"])]
    key: Option<String>,
    /// All keys that begin so
    #[arg(long, value_name = "PREFIX", conflicts_with_all = ["from", "to"])]
    prefix: Option<String>,
    /// All keys from this one on
    #[arg(long, value_name = "KEY")]
    from: Option<String>,
    /// All keys that are smaller than this one
    #[arg(long, value_name = "KEY")]
    to: Option<String>,
}

pub(super) async fn delete(place: &Place, arguments: DeleteArguments) -> Outcome {
    let bytes = |text: &Option<String>| -> Outcome<Option<Vec<u8>>> {
        text.as_ref().map(|text| Ok(parsed(text, place.hex)?.into_owned())).transpose()
    };
    let DeleteArguments { key, prefix, from, to } = &arguments;
    let [key, prefix, from, to] = [bytes(key)?, bytes(prefix)?, bytes(from)?, bytes(to)?];
    if prefix.as_ref().is_some_and(|prefix| prefix.is_empty()) {
        return Err(Failure::usage("--prefix: an empty one is that of all keys, which --from '' deletes"));
    }
    if to.is_some() && to <= from.clone().or(Some(Vec::new())) {
        return Err(Failure::usage("--to is no larger than --from: there are no keys between them"));
    }
    let database = place.write().await?;
    let deleted = async {
        let store = place.store(&database)?;
        let mut batch = Batch::new();
        match (&key, &prefix) {
            (Some(key), _) => batch.delete(&store, key),
            (_, Some(prefix)) => batch.delete_prefix(&store, prefix),
            _ => batch.delete_range(&store, from.as_deref().unwrap_or_default(), to.as_deref()),
        }
        Ok(database.write(batch, &WriteOptions::sync()).await?)
    };
    let deleted = deleted.await;
    closing(&database, deleted).await
}

/// Arguments of `tanada kv load`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each line has a key, a tab and a value, which is all that follows the tab: a carriage return, too.

Examples:
  tanada kv vol load pairs.tsv
  seq 1000000 | awk '{ print \"key\" $1 \"\\t\" $1 }' | tanada kv vol load")]
pub struct LoadArguments {
    /// A file with lines; without it stdin
    file: Option<PathBuf>,
    #[command(flatten)]
    write: WriteArguments,
}

/// Bytes that are written at once.
const BATCH_BYTES: usize = 256 << 10;

pub(super) async fn load(place: &Place, arguments: LoadArguments) -> Outcome {
    let file = arguments.file.as_deref().filter(|file| *file != Path::new("-"));
    let source = file.map_or_else(|| "stdin".to_owned(), |path| path.display().to_string());
    let input: Box<dyn Read + Send> = match file {
        None => Box::new(std::io::stdin()),
        Some(path) => Box::new(
            std::fs::File::open(path)
                .map_err(|error| Failure::failed(format!("cannot read {source}: {error}")))?,
        ),
    };
    let was_there = place.is_there();
    let database = place.write_or_new(&DatabaseSettings::default()).await?;
    let mut has_written = false;
    let loaded = async {
        let store = place.store_or_new(&database).await?;
        let options = arguments.write.options();
        let mut loading = Loading { place, database: &database, source, store, options, pairs: 0, bytes: 0 };
        let loaded = loading.all(lines(input, place.hex)?).await;
        has_written = loading.pairs > 0;
        let pairs = count(loading.pairs, "key");
        if let Err(failure) = loaded {
            // What was not durable yet may be what could not be written.
            let is_there = match database.sync().await {
                Ok(()) => {
                    format!("{pairs} before that {} written", if loading.pairs == 1 { "is" } else { "are" })
                }
                Err(_) => format!("of {pairs} before that the last may be lost"),
            };
            return Err(Failure::failed(format!("{failure}; {is_there}")));
        }
        Ok((loading.pairs, loading.bytes))
    };
    let loaded = loaded.await;
    let (pairs, bytes) = match closing(&database, loaded).await {
        Err(failure) => return place.with_all_or_nothing(was_there || has_written, Err(failure)).await,
        Ok(loaded) => loaded,
    };
    say(&format!("{} written, {}\n", count(pairs, "key"), size(bytes)))
}

/// Lines that were read together, without their ends.
type Lines = std::io::Result<Vec<Vec<u8>>>;

/// Reads lines on a thread of its own, for whoever waits for input must not keep the log from being written. What is
/// there is passed on before more is waited for. A line that is longer than any pair is an error.
fn lines(input: Box<dyn Read + Send>, hex: bool) -> Outcome<tokio::sync::mpsc::Receiver<Lines>> {
    // With the tab and the end of the line.
    let longest = text_bytes(LONGEST_KEY, hex) + text_bytes(LONGEST_VALUE, hex) + 2;
    let (sender, receiver) = tokio::sync::mpsc::channel(4);
    let read = move || {
        let mut input = BufReader::with_capacity(BATCH_BYTES, input);
        loop {
            let (mut lines, mut bytes) = (Vec::new(), 0);
            let more = loop {
                let mut line = Vec::new();
                match input.by_ref().take(longest + 1).read_until(b'\n', &mut line) {
                    Ok(0) => break Ok(false),
                    Ok(read) if read as u64 > longest => {
                        let why = format!("a line of more than {longest} bytes is no key with a value");
                        break Err(std::io::Error::new(std::io::ErrorKind::InvalidData, why));
                    }
                    Ok(read) => bytes += read,
                    Err(error) => break Err(error),
                }
                line.pop_if(|last| *last == b'\n');
                lines.push(line);
                if bytes >= BATCH_BYTES || input.buffer().is_empty() {
                    break Ok(true);
                }
            };
            let is_last = !matches!(more, Ok(true));
            let has_gone = !lines.is_empty() && sender.blocking_send(Ok(lines)).is_err();
            if let Err(error) = more {
                let _ = sender.blocking_send(Err(error));
            }
            if is_last || has_gone {
                return;
            }
        }
    };
    let started = std::thread::Builder::new().name("lines".to_owned()).spawn(read);
    started.map_err(|error| Failure::failed(format!("cannot start a thread that reads: {error}")))?;
    Ok(receiver)
}

/// A load that is under way.
struct Loading<'a> {
    place: &'a Place,
    database: &'a Database,
    /// Where the lines come from.
    source: String,
    store: Store,
    options: WriteOptions,
    /// Keys that were written, and bytes of them and their values.
    pairs: u64,
    bytes: u64,
}

impl Loading<'_> {
    async fn all(&mut self, mut lines: tokio::sync::mpsc::Receiver<Lines>) -> Outcome {
        let mut no = 0u64;
        while let Some(read) = lines.recv().await {
            let read = read.map_err(|error| {
                Failure::failed(format!("cannot read {} from line {} on: {error}", self.source, no + 1))
            })?;
            let mut wrong = None;
            let (mut batch, mut pairs, mut bytes) = (Batch::new(), 0, 0);
            for line in read {
                no += 1;
                match pair(&line, self.place.hex) {
                    Ok((key, value)) => {
                        batch.put(&self.store, &key, &value);
                        (pairs, bytes) = (pairs + 1, bytes + (key.len() + value.len()) as u64);
                    }
                    Err(what) => {
                        wrong = Some(Failure::failed(format!("{}, line {no}: {what}", self.source)));
                        break;
                    }
                }
            }
            if pairs > 0 {
                let first = no - pairs + u64::from(wrong.is_none());
                let written = self.database.write(batch, &self.options).await;
                written.map_err(|error| {
                    Failure::failed(format!("{}, from line {first} on: {error}", self.source))
                })?;
                (self.pairs, self.bytes) = (self.pairs + pairs, self.bytes + bytes);
            }
            if let Some(wrong) = wrong {
                self.database.sync().await?;
                return Err(wrong);
            }
        }
        Ok(self.database.sync().await?)
    }
}

/// The key and the value of a line.
fn pair(line: &[u8], hex: bool) -> Result<(Vec<u8>, Vec<u8>), String> {
    let tab = line.iter().position(|byte| *byte == b'\t').ok_or("there is no tab between key and value")?;
    let (key, value) = (&line[..tab], &line[tab + 1..]);
    if !hex {
        return Ok((key.to_vec(), value.to_vec()));
    }
    let digits = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).map_err(|_| "these are no hexadecimal digits".to_owned())?;
        parsed(text, true).map(std::borrow::Cow::into_owned).map_err(|failure| failure.to_string())
    };
    Ok((digits(key)?, digits(value)?))
}
