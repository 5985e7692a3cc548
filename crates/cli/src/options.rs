//! Arguments that several subcommands share: what is mounted and with which resources.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, ValueEnum};
use tanada_base::ByteSize;
use tanada_innodb::MountOptions;
use tanada_io::Method;
use tanada_query::{Session, SessionOptions};

use crate::failure::{Failure, Outcome};

/// How files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MethodName {
    /// io_uring with O_DIRECT.
    Uring,
    /// Linux native AIO with O_DIRECT.
    Aio,
    /// A pool of threads with pread and O_DIRECT.
    Threads,
    /// A pool of threads through the kernel's page cache.
    Buffered,
}

impl From<MethodName> for Method {
    fn from(name: MethodName) -> Method {
        match name {
            MethodName::Uring => Method::Uring,
            MethodName::Aio => Method::Aio,
            MethodName::Threads => Method::Threads,
            MethodName::Buffered => Method::Buffered,
        }
    }
}

/// What is mounted, and how it is read.
#[derive(Debug, Clone, Args)]
pub struct MountArguments {
    /// A data directory of MySQL 8+ or MariaDB 10.6+, a database folder in one, or an .ibd file; may be repeated
    #[arg(long, value_name = "DIR")]
    pub innodb: Vec<PathBuf>,
    /// A volume's folder: InnoDB files among its objects are databases; may be repeated
    #[arg(long, value_name = "DIR")]
    pub volume: Vec<PathBuf>,
    /// A folder of Parquet files, which becomes a schema of its name: each *.parquet file, and each folder of such, is
    /// a table; may be repeated
    #[arg(long, value_name = "DIR")]
    pub parquet: Vec<PathBuf>,
    /// The default database; with one database mounted it is the default anyway
    #[arg(long, value_name = "NAME")]
    pub database: Option<String>,
    /// A file with SHOW CREATE TABLE output, for tables without SDI or .frm; may be repeated
    #[arg(long, value_name = "FILE")]
    pub ddl: Vec<PathBuf>,
    /// Where files outside of the data directory (DATA DIRECTORY, general tablespaces) are now; may be repeated
    #[arg(long, value_name = "OLD=NEW", value_parser = path_pair)]
    pub path_map: Vec<(PathBuf, PathBuf)>,
    /// Read files although the server did not shut down cleanly: rows may be missing, doubled or uncommitted
    #[arg(long)]
    pub allow_stale: bool,
    /// Read all pages that are not damaged, and list on stderr what was lost; exit code 3 says that rows are missing
    #[arg(long)]
    pub skip_damaged: bool,
    /// Do not verify page checksums
    #[arg(long)]
    pub no_verify_checksums: bool,
    /// How files are read; where the kernel refuses one, the next best is taken with a warning
    #[arg(long, value_enum, default_value = "uring")]
    pub method: MethodName,
    /// Page cache
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    pub cache: ByteSize,
    /// Memory for query operators
    #[arg(long, value_name = "SIZE", default_value = "2GiB")]
    pub memory: ByteSize,
    /// Keep columnar mirrors of the columns that are scanned in a folder, or in volume:FOLDER of a mounted volume, and
    /// read them instead of the tables' pages as long as these do not change
    #[arg(long, value_name = "DIR")]
    pub columnar: Option<String>,
    /// A setting, as SET KEY = VALUE would change it; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
}

impl MountArguments {
    /// A session with everything mounted and set; warnings go to stderr.
    pub async fn session(&self) -> Outcome<Session> {
        if self.memory.bytes() == 0 {
            return Err(Failure::usage("--memory 0 leaves nothing for queries; give them at least 16MiB"));
        }
        let session = Session::new(SessionOptions {
            method: self.method.into(),
            cache_bytes: self.cache.bytes(),
            memory_bytes: self.memory.bytes(),
            verify_checksums: !self.no_verify_checksums,
            ..SessionOptions::default()
        })?;
        note_decisions(&session);
        let mounted = self.mount(&session).await;
        if mounted.is_err() {
            // What went wrong is what matters; volumes that were mounted before are to be stopped cleanly.
            let _ = session.close().await;
        }
        mounted.map(|()| session)
    }

    async fn mount(&self, session: &Session) -> Outcome {
        if self.skip_damaged {
            session.set("tanada.skip_damaged", "true").await?;
        }
        // Before anything is mounted: placement begins with a volume.
        for (key, value) in &self.set {
            session
                .set(key, value)
                .await
                .map_err(|error| Failure::usage(format!("--set {key}={value}: {error}")))?;
        }
        let options = MountOptions {
            allow_stale: self.allow_stale,
            ddl: self.ddl.clone(),
            path_map: self.path_map.clone(),
        };
        for path in &self.innodb {
            warn(session.mount_innodb(path, &options).await?.1);
        }
        for path in &self.volume {
            warn(session.mount_volume(path, &options).await?.1);
        }
        for path in &self.parquet {
            session.mount_parquet(path).await?;
        }
        if let Some(place) = &self.columnar {
            session.keep_mirrors(place).await?;
        }
        if let Some(database) = &self.database {
            session.use_database(database)?;
        }
        Ok(())
    }
}

/// What placement does is noted at once, so that it is known of a session that is killed, too. Whether that works is
/// said once: whoever asks a question has the answer all the same.
fn note_decisions(session: &Session) {
    let has_failed = AtomicBool::new(false);
    session.on_placed(move |placed| {
        if let Err(failure) = crate::volume::decisions::note_placed(placed)
            && !has_failed.swap(true, Ordering::Relaxed)
        {
            warn(vec![failure.to_string()]);
        }
    });
}

fn warn(warnings: Vec<String>) {
    for warning in warnings {
        eprintln!("tanada: warning: {}", crate::failure::one_line(&warning));
    }
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("write it as KEY=VALUE, for instance tanada.execution=in_order".to_owned()),
    }
}

/// A folder or a file as a server knows it, and its place.
pub fn path_pair(text: &str) -> Result<(PathBuf, PathBuf), String> {
    match text.split_once('=') {
        Some((old, new)) if !old.is_empty() && !new.is_empty() => Ok((old.into(), new.into())),
        _ => Err("write it as OLD=NEW, for instance /var/lib/far=/mnt/copy/far".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_of_paths_has_both() {
        assert_eq!(path_pair("/a=/b"), Ok(("/a".into(), "/b".into())));
        assert!(path_pair("/a=").is_err() && path_pair("=/b").is_err() && path_pair("/a").is_err());
    }

    #[test]
    fn a_setting_is_split_at_the_first_equals_sign() {
        assert_eq!(key_value("a.b = c=d"), Ok(("a.b".to_owned(), "c=d".to_owned())));
        assert!(key_value("a.b").is_err());
        assert!(key_value("=x").is_err());
    }
}
