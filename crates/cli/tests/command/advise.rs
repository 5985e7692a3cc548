//! `tanada advise` with a mounted volume: what it prints, what it refuses, and what is left when the mount is gone.

use std::fs;
use std::process::Command;

use crate::mount::{Served, refusal};
use crate::tanada;

const SCHEMA: &str = "
    create table orders (o_id integer primary key, o_customer int, o_text text);
    create index o_customer on orders (o_customer);
    with recursive n (n) as (select 1 union all select n + 1 from n where n < 20000)
        insert into orders select n, n % 1000, replace(hex(zeroblob(60)), '00', 'order ') from n;";

/// A mounted volume of two classes with a database of SQLite in the slower one; none where that cannot be.
fn shop() -> Option<(Served, String)> {
    if refusal().is_some() {
        return None;
    }
    if !std::path::Path::new("/usr/bin/sqlite3").exists() {
        eprintln!("skipped: there is no sqlite3; scripts/setup --test installs it");
        return None;
    }
    let served = Served::with_policy("plan");
    let folder = served.root().join("lite");
    fs::create_dir(&folder).unwrap();
    rustix::fs::setxattr(&folder, "user.tanada.class", b"slow", rustix::fs::XattrFlags::empty()).unwrap();
    let file = folder.join("shop.db");
    let made = Command::new("sqlite3").arg(&file).arg(SCHEMA).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    // Reads that are counted: without the kernel's cache.
    let direct = fs::OpenOptions::new().read(true).open(&file).unwrap();
    direct.sync_all().unwrap();
    rustix::fs::fadvise(&direct, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    assert!(fs::read(&file).unwrap().len() > 7 << 20);
    Some((served, file.display().to_string()))
}

#[test]
fn a_statement_of_sqlite_is_explained_placed_and_run() {
    let Some((mut served, file)) = shop() else { return };
    let volume = served.volume();
    let statement = "select count(*) from orders where o_text like '%x%'";
    let advise = ["advise", "--sqlite", &file, "--volume", &volume];
    let said = tanada(&[&advise[..], &["--", statement]].concat()).output();
    assert!(said.contains("lite/shop.db") && said.contains("scan"), "{said}");
    assert!(said.contains("policy plan:") && said.contains("relocations done"), "{said}");
    let json = tanada(&[&advise[..], &["--json", "--run", "--", statement]].concat()).output();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["rows"], 1);
    assert_eq!(json["accesses"][0]["index"], "orders");
    // What was moved up before stays, as long as nobody needs the space.
    assert_eq!(json["forecast"]["classes"][0][0][0], "fast", "{json}");
    let nothing = tanada(&[&advise[..], &["--", "select 1"]].concat()).output();
    assert_eq!(nothing, "the statement reads nothing that lies in the volume\n");
    let wrong = tanada(&[&advise[..], &["--", "selec 1"]].concat()).error(1);
    assert!(wrong.contains("syntax error"), "{wrong}");
    served.end();
    let gone = tanada(&[&advise[..], &["--", statement]].concat()).error(1);
    assert!(gone.contains("is not mounted") || gone.contains("No such file"), "{gone}");
    let checked = tanada(&["volume", "check", &volume]).output();
    assert!(checked.starts_with("sound"), "{checked}");
}

#[test]
fn advice_needs_a_policy_and_takes_no_password_from_the_command_line() {
    let url = "mysql://root:hunter2@127.0.0.1/shop";
    let refused = tanada(&["advise", "--mysql", url, "--volume", "nowhere", "--", "select 1"]).error(2);
    assert!(refused.contains("--password-file") && !refused.contains("hunter2"), "{refused}");
    if refusal().is_some() {
        return;
    }
    let mut served = Served::new("64MiB");
    let file = served.root().join("x");
    fs::write(&file, "").unwrap();
    let (volume, file) = (served.volume(), file.display().to_string());
    let refused = tanada(&["advise", "--sqlite", &file, "--volume", &volume, "--", "select 1"]).error(1);
    assert!(refused.contains("--policy benefit"), "{refused}");
    served.end();
}
