#!/usr/bin/env bash
# arrow-array 59.3.2: a StringViewBuilder that is used again after finish() goes on with the block size to which it had
# grown. From then on each array, however small, holds a buffer of up to 2 MiB, and says so when it is asked.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

missing() { echo "cannot be shown: $*" >&2; exit 2; }
command -v cargo >/dev/null || missing "cargo is not installed"
mkdir "$folder/src"
cat >"$folder/Cargo.toml" <<'TOML'
[package]
name = "show"
version = "0.1.0"
edition = "2021"

[dependencies]
arrow-array = "=59.3.2"

[workspace]
TOML
cat >"$folder/src/main.rs" <<'RUST'
use arrow_array::{builder::StringViewBuilder, Array};

fn bytes_of_ten(builder: &mut StringViewBuilder) -> usize {
    (0..10).for_each(|_| builder.append_value("a text that is too long for a view"));
    builder.finish().get_buffer_memory_size()
}

fn main() {
    let mut builder = StringViewBuilder::new();
    let first = bytes_of_ten(&mut builder);
    for _ in 0..100_000 {
        builder.append_value("a text that is too long for a view");
    }
    builder.finish();
    let (again, new) = (bytes_of_ten(&mut builder), bytes_of_ten(&mut StringViewBuilder::new()));
    println!("ten texts of 34 bytes: {first} bytes at first, {again} after a large array, {new} by a new builder");
    assert!(first < 40_000 && new < 40_000 && again > 2_000_000);
}
RUST
(cd "$folder" && cargo build -q 2>"$folder/log") || {
    tail -n 3 "$folder/log" >&2
    missing "arrow-array 59.3.2 cannot be built"
}
"$folder/target/debug/show"
