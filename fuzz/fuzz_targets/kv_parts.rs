//! Parts of what a key-value database stores, from any bytes: frames and groups of the log, pages, filters, footers and
//! tails of key files, records of the manifest, compressed values, policies and settings. The first byte chooses.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((kind, bytes)) = input.split_first() else { return };
    tanada_kv::fuzzing::parse(*kind, bytes);
});
