//! `tanada kv get` and `scan`.

use std::borrow::Cow;
use std::io::{BufWriter, Write};

use clap::Args;
use tanada_kv::{Cursor, CursorOptions};

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
#[command(after_help = "\
Examples:
  tanada kv vol scan --prefix user: --limit 10
  tanada kv vol scan --from 2025-01 --to 2025-07         # the second one is left out
  tanada kv vol scan --to 2025-07 --reverse --limit 1    # the last one before")]
pub struct ScanArguments {
    /// Only keys that begin so
    #[arg(long, value_name = "PREFIX", default_value = "")]
    prefix: String,
    /// Only keys from this one on
    #[arg(long, value_name = "KEY")]
    from: Option<String>,
    /// Only keys that are smaller than this one
    #[arg(long, value_name = "KEY")]
    to: Option<String>,
    /// From the last of these keys to the first
    #[arg(long)]
    reverse: bool,
    /// So many at most
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Keys without their values
    #[arg(long)]
    keys: bool,
}

pub(super) async fn scan(place: &Place, arguments: ScanArguments) -> Outcome {
    let walk = Walk::new(place, &arguments)?;
    let database = place.read().await?;
    let scanned = scan_in(place, &database, &walk, &arguments).await;
    closing(&database, scanned).await
}

/// The keys that are shown.
struct Walk {
    prefix: Vec<u8>,
    from: Vec<u8>,
    /// Not with this one.
    to: Option<Vec<u8>>,
    is_reverse: bool,
}

impl Walk {
    fn new(place: &Place, arguments: &ScanArguments) -> Outcome<Walk> {
        let bytes = |text: &str| parsed(text, place.hex).map(Cow::into_owned);
        let ScanArguments { prefix, from, to, reverse, .. } = arguments;
        let (from, to) = (from.as_deref().unwrap_or_default(), to.as_deref());
        let walk = Walk {
            prefix: bytes(prefix)?,
            from: bytes(from)?,
            to: to.map(bytes).transpose()?,
            is_reverse: *reverse,
        };
        if walk.to.as_ref().is_some_and(|to| *to <= walk.from) {
            return Err(Failure::usage("--to is no larger than --from: there are no keys between them"));
        }
        Ok(walk)
    }

    /// Puts the cursor where the walk begins.
    async fn begin(&self, cursor: &mut Cursor) -> tanada_kv::Result<()> {
        match (self.is_reverse, &self.to) {
            (false, _) => cursor.seek(&self.from).await,
            (true, Some(to)) => cursor.seek(to).await,
            (true, None) => cursor.seek_to_end().await,
        }
    }

    fn has(&self, key: &[u8]) -> bool {
        *key >= *self.from && self.to.as_ref().is_none_or(|to| *key < **to)
    }
}

async fn scan_in(
    place: &Place,
    database: &tanada_kv::Database,
    walk: &Walk,
    arguments: &ScanArguments,
) -> Outcome {
    let store = place.store(database)?;
    let options = CursorOptions { keys_only: arguments.keys, ..CursorOptions::prefix(&walk.prefix) };
    let mut cursor = store.cursor(options);
    walk.begin(&mut cursor).await?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    for _ in 0..arguments.limit.unwrap_or(u64::MAX) {
        let found = if walk.is_reverse { cursor.previous().await? } else { cursor.next().await? };
        let Some((key, value)) = found.filter(|(key, _)| walk.has(key)) else { break };
        shown(&mut out, &key, place.hex)?;
        if !arguments.keys {
            out.write_all(b"\t")?;
            shown(&mut out, &value, place.hex)?;
        }
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}
