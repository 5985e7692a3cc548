//! `tanada kv get` and `scan`.

use std::io::{BufWriter, Write};

use clap::Args;
use tanada_kv::CursorOptions;

use super::bytes::{parsed, shown};
use super::{Place, closing};
use crate::failure::{Failure, Outcome};

/// Arguments of `tanada kv get`.
#[derive(Debug, Args)]
pub struct GetArguments {
    /// The key
    key: String,
}

pub(super) async fn get(place: &Place, arguments: GetArguments) -> Outcome {
    let key = parsed(&arguments.key, place.hex)?.into_owned();
    let database = place.read().await?;
    let found = async { Ok(place.store(&database)?.get(&key).await?) };
    let found = found.await;
    let Some(value) = closing(&database, found).await? else {
        return Err(Failure::failed(format!(
            "there is no key '{}' in store '{}'",
            arguments.key, place.store
        )));
    };
    let mut out = std::io::stdout().lock();
    shown(&mut out, &value, place.hex)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// Arguments of `tanada kv scan`.
#[derive(Debug, Args)]
pub struct ScanArguments {
    /// Only keys that begin so
    #[arg(long, value_name = "PREFIX", default_value = "")]
    prefix: String,
    /// From this key on
    #[arg(long, value_name = "KEY")]
    from: Option<String>,
    /// From the last key to the first
    #[arg(long, conflicts_with = "from")]
    reverse: bool,
    /// So many at most
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Keys without their values
    #[arg(long)]
    keys: bool,
}

pub(super) async fn scan(place: &Place, arguments: ScanArguments) -> Outcome {
    let database = place.read().await?;
    let scanned = scan_in(place, &database, &arguments).await;
    closing(&database, scanned).await
}

async fn scan_in(place: &Place, database: &tanada_kv::Database, arguments: &ScanArguments) -> Outcome {
    let store = place.store(database)?;
    let prefix = parsed(&arguments.prefix, place.hex)?;
    let options = CursorOptions { keys_only: arguments.keys, ..CursorOptions::prefix(&prefix) };
    let mut cursor = store.cursor(options);
    if let Some(from) = &arguments.from {
        cursor.seek(&parsed(from, place.hex)?).await?;
    }
    if arguments.reverse {
        cursor.seek_to_end().await?;
    }
    let mut out = BufWriter::new(std::io::stdout().lock());
    for _ in 0..arguments.limit.unwrap_or(u64::MAX) {
        let found = if arguments.reverse { cursor.previous().await? } else { cursor.next().await? };
        let Some((key, value)) = found else { break };
        shown(&mut out, &key, place.hex)?;
        if !arguments.keys {
            out.write_all(b"\t")?;
            shown(&mut out, &value, place.hex)?;
        }
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}
