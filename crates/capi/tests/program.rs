//! A program in C, compiled and linked as its author would, does what it should.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder where cargo put the library for this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let folders = test.ancestors().skip(1).take(2);
    let is_there = |folder: &&Path| folder.join("libtanada_kv_c.so").exists();
    folders.into_iter().find(is_there).expect("the library lies beside the tests").to_path_buf()
}

#[test]
fn a_program_in_c_uses_the_engine() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let library = library();
    let compiled = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o"])
        .arg(&program)
        .arg(root.join("tests/program.c"))
        .arg("-I")
        .arg(root.join("../../include"))
        .arg("-L")
        .arg(&library)
        .arg("-ltanada_kv_c")
        .status()
        .unwrap();
    assert!(compiled.success());
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.arg(folder.path().join("volume")).args(arguments).env("LD_LIBRARY_PATH", &library);
        let ran = command.output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        ran.stdout
    };
    assert!(run(&[]).starts_with(b"all is well"));
    run(&["stop"]);
    run(&["recover"]);
}
