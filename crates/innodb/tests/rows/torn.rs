//! Copies of a server's files of which some were taken later or earlier than the rest.

use std::path::Path;

use tanada_innodb::{Catalog, ErrorKind, IndexNo, KeyRange, MountOptions, Result, Value};

use crate::fixtures::unpacked;
use crate::support::{environment, run, scan, stored_columns};

const SERVERS: [&str; 2] = ["mariadb-10.11", "mysql-9.7"];

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &to),
            false => assert!(std::fs::copy(&path, to).is_ok()),
        }
    }
}

/// The data directory of `server` with the table's file of another `moment`, or its own.
fn directory(server: &str, moment: Option<&str>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = unpacked("torn").join(server);
    copy(&source.join("data"), folder.path());
    if let Some(moment) = moment {
        std::fs::copy(source.join(moment).join("t.ibd"), folder.path().join("torn/t.ibd")).unwrap();
    }
    folder
}

/// The sum of all balances.
fn sum(folder: &Path, allow_stale: bool) -> Result<i128> {
    let (environment, folder) = (environment(true), folder.to_owned());
    let within = environment.clone();
    run(&environment, move || async move {
        let options = MountOptions { allow_stale, ..MountOptions::default() };
        let catalog = Catalog::open(&folder, &options, &within).await?;
        let table = catalog.table("torn", "t").await?;
        let access = table.access(IndexNo(0), &stored_columns(&table))?;
        let rows = scan(&table, &access, &KeyRange::all()).await?;
        let balance = |row: &Vec<Value<'static>>| match row[1] {
            Value::Int(balance) => i128::from(balance),
            _ => 0,
        };
        Ok(rows.iter().map(balance).sum())
    })
}

#[test]
fn files_of_one_moment_are_read() {
    for server in SERVERS {
        let folder = directory(server, None);
        assert_eq!(sum(folder.path(), false).unwrap(), 50_050, "{server}");
        assert_eq!(sum(&folder.path().join("torn"), false).unwrap(), 50_050, "{server}");
    }
}

/// It gave the sum of a transaction that was not committed.
#[test]
fn a_file_copied_later_than_the_log_is_refused_unless_accepted() {
    for server in SERVERS {
        let folder = directory(server, Some("later"));
        let error = sum(folder.path(), false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotClean, "{server}: {error}");
        for part in ["t.ibd", "page ", "LSN ", "FOR EXPORT", "--prepare", "--allow-stale"] {
            assert!(error.to_string().contains(part), "{server}: {error}");
        }
        assert_eq!(sum(folder.path(), true).unwrap(), 30_050, "{server}");
    }
}

/// It was read as of its time.
#[test]
fn a_file_copied_earlier_than_the_log_is_refused_unless_accepted() {
    for server in SERVERS {
        let folder = directory(server, Some("earlier"));
        let error = sum(folder.path(), false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotClean, "{server}: {error}");
        for part in ["t.ibd", "page ", "changed last at LSN ", "has a change of it at LSN ", "--allow-stale"]
        {
            assert!(error.to_string().contains(part), "{server}: {error}");
        }
        assert_eq!(sum(folder.path(), true).unwrap(), 50_000, "{server}");
    }
}

/// It was called a file that was copied earlier than the log.
#[test]
fn a_damaged_page_that_the_log_has_a_change_of_is_damage() {
    for (server, leaf) in [("mariadb-10.11", 3), ("mysql-9.7", 4)] {
        let folder = directory(server, None);
        let path = folder.path().join("torn/t.ibd");
        let mut image = std::fs::read(&path).unwrap();
        image[leaf * 16384 + 5000] ^= 1;
        std::fs::write(&path, image).unwrap();
        let error = sum(folder.path(), false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{server}: {error}");
        assert!(error.to_string().contains(&format!("page {leaf}: ")), "{server}: {error}");
    }
}

/// It was called the root of another index.
#[test]
fn a_root_of_zeros_is_damage_and_no_contradiction() {
    let folder = directory("mariadb-10.11", None);
    let path = folder.path().join("torn/t.ibd");
    let mut image = std::fs::read(&path).unwrap();
    image[3 * 16384..4 * 16384].fill(0);
    std::fs::write(&path, image).unwrap();
    let error = sum(folder.path(), true).unwrap_err().to_string();
    assert!(error.contains("all zeros") && !error.contains("restore the right file"), "{error}");
}

/// `ibdata1` of a running server has undo logs and a dictionary that are newer than the log.
#[test]
fn a_system_tablespace_newer_than_the_log_is_refused_when_mounting() {
    let folder = directory("mariadb-10.11", None);
    let path = folder.path().join("ibdata1");
    let mut image = std::fs::read(&path).unwrap();
    let (page, lsn) = (5 * 16384, 16);
    // The LSN of the list of rollback segments, and the checksum of full_crc32 pages or of classic ones.
    image[page + lsn..page + lsn + 8].copy_from_slice(&(1u64 << 40).to_be_bytes());
    reseal(&mut image[page..page + 16384]);
    std::fs::write(&path, image).unwrap();
    let error = sum(folder.path(), false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotClean, "{error}");
    assert!(error.to_string().contains("ibdata1") && error.to_string().contains("1099511627776"), "{error}");
}

/// Puts the checksum of a full_crc32 page right.
fn reseal(page: &mut [u8]) {
    let end = page.len() - 4;
    let crc = crc32c::crc32c(&page[..end]).to_be_bytes();
    page[end..].copy_from_slice(&crc);
}
