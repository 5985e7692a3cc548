//! The data: rows of InnoDB files, loaded into an empty data directory on a plain file system.

use std::io::Write;
use std::path::{Path, PathBuf};

use futures::StreamExt;
use tanada_innodb::MountOptions;
use tanada_query::{Session, SessionOptions};

use super::system::{Client, DATABASE, Server, System};
use super::{Rdbms, RdbmsSettings, schema};
use crate::{Error, Result};

/// Makes the data directory `data` with all tables, and closes it in order. Returns the folder of the tables' files,
/// below the data directory.
pub(super) async fn load(
    settings: &RdbmsSettings,
    system: &System,
    data: &Path,
    beside: &Path,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<PathBuf> {
    progress("making a data directory");
    system.install(data)?;
    let server = system.start(data, beside).await?;
    let mut client = server.administer().await?;
    client.run(&format!("create database {DATABASE}")).await?;
    client.close().await;
    let mut client = server.connect().await?;
    let session = Session::new(SessionOptions::default())?;
    session.mount_innodb(&settings.innodb, &MountOptions::default()).await?;
    session.use_database(&settings.database)?;
    for table in schema::tables() {
        progress(&format!("loading {}", table.name));
        let file = beside.join("rows");
        write_rows(&session, &table.name, &file).await?;
        client.run(&table.create(system.rdbms)).await?;
        let (name, path) = (&table.name, file.display());
        let load = match system.rdbms {
            Rdbms::MariaDb => format!("load data infile '{path}' into table {name}"),
            Rdbms::Postgres => format!("copy {name} from '{path}'"),
        };
        client.run(&load).await?;
        std::fs::remove_file(&file).map_err(|error| Error::at_path("remove", &file, &error))?;
        for statement in table.index(system.rdbms) {
            client.run(&statement).await?;
        }
    }
    let inner = finish(system, &server, &mut client).await?;
    client.close().await;
    session.close().await?;
    server.stop().await?;
    Ok(inner)
}

/// Gathers statistics, and has everything written; the folder of the tables.
async fn finish(system: &System, server: &Server, client: &mut Client) -> Result<PathBuf> {
    let tables: Vec<String> = schema::tables().into_iter().map(|table| table.name).collect();
    match system.rdbms {
        Rdbms::MariaDb => {
            client.run(&format!("analyze table {}", tables.join(", "))).await?;
            let mut administrator = server.administer().await?;
            // Merges and purges all there is, so that no run has to.
            administrator.run("set global innodb_fast_shutdown = 0").await?;
            administrator.close().await;
            Ok(DATABASE.into())
        }
        Rdbms::Postgres => {
            // Sets the hint bits of all rows too, which the first reader would write otherwise.
            client.run("vacuum analyze").await?;
            client.run("checkpoint").await?;
            let rows = client.rows("select oid from pg_database where datname = current_database()").await?;
            let number =
                rows.first().ok_or_else(|| Error::failed("PostgreSQL has no number of its database"))?;
            Ok(Path::new("base").join(number))
        }
    }
}

/// Writes the rows of a table as lines, values with tabs between them, which both systems read.
async fn write_rows(session: &Session, table: &str, path: &Path) -> Result<()> {
    let failed = |error: std::io::Error| Error::at_path("write", path, &error);
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).map_err(failed)?);
    let mut result = session.execute(&format!("select * from {table}")).await?;
    while let Some(batch) = result.stream().next().await {
        let batch = batch.map_err(|error| Error::failed(format!("{table}: {error}")))?;
        for line in tanada_sample::answer::lines(&[batch])? {
            // The rows of TPC-H have nothing that would have to be escaped.
            if line.contains('\\') || line.split('\t').any(|value| value == "NULL") {
                return Err(Error::failed(format!("{table} has a row that is none of TPC-H: {line:?}")));
            }
            writeln!(file, "{line}").map_err(failed)?;
        }
    }
    file.flush().map_err(failed)
}
