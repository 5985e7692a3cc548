//! `tanada kv put`, `delete` and `load`.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use tanada_kv::{Batch, Database, Store, WriteOptions};

use super::bytes::parsed;
use super::{Place, closing};
use crate::failure::{Failure, Outcome};
use crate::output::{count, say, size};

/// Arguments of `tanada kv put`.
#[derive(Debug, Args)]
pub struct PutArguments {
    /// The key
    key: String,
    /// The value; - is stdin
    value: String,
}

pub(super) async fn put(place: &Place, arguments: PutArguments) -> Outcome {
    let key = parsed(&arguments.key, place.hex)?.into_owned();
    let value = if arguments.value == "-" {
        let mut read = Vec::new();
        std::io::stdin()
            .lock()
            .read_to_end(&mut read)
            .map_err(|error| Failure::failed(format!("cannot read the value from stdin: {error}")))?;
        read
    } else {
        parsed(&arguments.value, place.hex)?.into_owned()
    };
    let database = place.write(true).await?;
    let written = async {
        let store = place.store_or_new(&database).await?;
        Ok(store.put_with(&key, &value, &WriteOptions::sync()).await?)
    };
    let written = written.await;
    closing(&database, written).await
}

/// Arguments of `tanada kv delete`.
#[derive(Debug, Args)]
pub struct DeleteArguments {
    /// The key
    #[arg(required_unless_present = "prefix", conflicts_with = "prefix")]
    key: Option<String>,
    /// All keys that begin so
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
}

pub(super) async fn delete(place: &Place, arguments: DeleteArguments) -> Outcome {
    let database = place.write(false).await?;
    let deleted = async {
        let store = place.store(&database)?;
        let mut batch = Batch::new();
        if let Some(key) = &arguments.key {
            batch.delete(&store, &parsed(key, place.hex)?);
        }
        if let Some(prefix) = &arguments.prefix {
            batch.delete_prefix(&store, &parsed(prefix, place.hex)?);
        }
        Ok(database.write(batch, &WriteOptions::sync()).await?)
    };
    let deleted = deleted.await;
    closing(&database, deleted).await
}

/// Arguments of `tanada kv load`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each line has a key, a tab and a value.

Examples:
  tanada kv vol load pairs.tsv
  seq 1000000 | awk '{ print \"key\" $1 \"\\t\" $1 }' | tanada kv vol load")]
pub struct LoadArguments {
    /// A file with lines; without it stdin
    file: Option<PathBuf>,
}

/// Bytes that are written at once.
const BATCH_BYTES: usize = 256 << 10;

pub(super) async fn load(place: &Place, arguments: LoadArguments) -> Outcome {
    let lines: Box<dyn BufRead> = match arguments.file.as_deref().filter(|file| *file != Path::new("-")) {
        None => Box::new(BufReader::new(std::io::stdin())),
        Some(path) => {
            let file = std::fs::File::open(path)
                .map_err(|error| Failure::failed(format!("cannot read {}: {error}", path.display())))?;
            Box::new(BufReader::new(file))
        }
    };
    let database = place.write(true).await?;
    let loaded = async {
        let store = place.store_or_new(&database).await?;
        load_lines(place, &database, &store, lines).await
    };
    let loaded = loaded.await;
    let (pairs, bytes) = closing(&database, loaded).await?;
    say(&format!("{} written, {}\n", count(pairs, "key"), size(bytes)))
}

async fn load_lines(
    place: &Place,
    database: &Database,
    store: &Store,
    mut lines: Box<dyn BufRead>,
) -> Outcome<(u64, u64)> {
    let (mut pairs, mut bytes) = (0, 0);
    let (mut batch, mut batch_bytes) = (Batch::new(), 0);
    let mut line = Vec::new();
    for no in 1.. {
        line.clear();
        let read = lines
            .read_until(b'\n', &mut line)
            .map_err(|error| Failure::failed(format!("cannot read line {no}: {error}")))?;
        if read == 0 {
            break;
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let (key, value) =
            pair(text, place.hex).map_err(|what| Failure::failed(format!("line {no}: {what}")))?;
        batch.put(store, &key, &value);
        pairs += 1;
        batch_bytes += key.len() + value.len();
        if batch_bytes >= BATCH_BYTES {
            bytes += std::mem::take(&mut batch_bytes) as u64;
            database.write(std::mem::take(&mut batch), &WriteOptions::default()).await?;
        }
    }
    bytes += batch_bytes as u64;
    if !batch.is_empty() {
        database.write(batch, &WriteOptions::default()).await?;
    }
    database.sync().await?;
    Ok((pairs, bytes))
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
