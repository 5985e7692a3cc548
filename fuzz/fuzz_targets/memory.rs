//! What policies have learned: parts of any bytes, rightly packed and sealed, are a memory or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tanada_placement::{Layout, Memory};

fn part(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let packed = zstd::bulk::compress(bytes, 1).expect("memory");
    let lengths = [(bytes.len() as u32).to_be_bytes(), (packed.len() as u32).to_be_bytes()].concat();
    [&[kind], &lengths[..], &packed].concat()
}

fuzz_target!(|input: &[u8]| {
    let Some((kind, bytes)) = input.split_first() else { return };
    // Chunks of 1 MiB, one object called "a".
    let names = part(1, &[0x80, 0x80, 0x40, 1, 1, b'a']);
    let parts = [names, part(kind % 8, bytes)].concat();
    let checksum = crc32c::crc32c(&parts).to_be_bytes();
    let file = [&b"TANADAPM\x00\x01\x00\x00"[..], &checksum, &parts].concat();
    let mut layout = Layout::new(1 << 20);
    layout.add("a", 100 << 20);
    if let Ok((memory, _)) = Memory::from_bytes(&file, &mut layout) {
        drop(memory.to_bytes(&layout));
    }
});
