//! Stored pages of a volume: any bytes, also rightly sealed, are a page or an error, and a page of them comes back.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| tanada_volume::transform::fuzzing::stored_page(input));
