//! A program in C, compiled and linked as its author would, does what it should.

use std::path::{Path, PathBuf};
use std::process::Command;

use tanada_kv::blocking::wait;
use tanada_volume::VolumeSettings;
use tanada_volume::directory::{ClassConfig, Directory, Settings};

/// The folder where cargo put the library for this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let folders = test.ancestors().skip(1).take(2);
    let is_there = |folder: &&Path| folder.join("libtanada_kv_c.so").exists();
    folders.into_iter().find(is_there).expect("the library lies beside the tests").to_path_buf()
}

/// A volume as `tanada volume create` makes it.
fn make_two_classes(path: &Path) {
    let class = |name: &str| ClassConfig::new(name, vec![name.into()], Some(256 << 20));
    let settings = VolumeSettings { id: *b"16 random bytes!", ..VolumeSettings::default() };
    let classes = [class("fast"), class("slow")];
    let made = wait(Directory::create(path, &settings, &classes, Settings::default()));
    wait(made.expect("a volume can be made").close()).expect("it can be closed");
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
    let run_on = |volume: &str, arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.arg(folder.path().join(volume)).args(arguments).env("LD_LIBRARY_PATH", &library);
        let ran = command.output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        ran.stdout
    };
    let run = |arguments: &[&str]| run_on("volume", arguments);
    assert!(run(&[]).starts_with(b"all is well"));
    run(&["stop"]);
    run(&["recover"]);
    make_two_classes(&folder.path().join("tiers"));
    run_on("tiers", &["drain"]);
}
