//! Whether a server left its files clean: redo logs of both servers in every format, with checksums of headers,
//! checkpoints, blocks and mini-transactions made right. A log with a record behind its checkpoint must never pass as
//! clean.
#![no_main]

use std::path::PathBuf;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tanada_fuzz::{Input, table};
use tanada_innodb::ErrorKind;

const BLOCK: usize = 512;
const RING: usize = 12288;

fn seal_block(block: &mut [u8]) {
    let crc = crc32c::crc32c(&block[..BLOCK - 4]).to_be_bytes();
    block[BLOCK - 4..BLOCK].copy_from_slice(&crc);
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = file.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// A log since MariaDB 10.8; says whether a whole record other than of a checkpoint lies right behind the checkpoint.
fn ring(input: &mut Input<'_>) -> (Vec<u8>, bool) {
    let capacity = 512 + input.word() % 4096;
    let first = RING as u64;
    let checkpoint = first + input.word() as u64 % (3 * capacity as u64);
    let mut file = vec![0; RING + capacity];
    put(&mut file, 0, b"Phys");
    put(&mut file, 8, &first.to_be_bytes());
    seal_block(&mut file[..BLOCK]);
    for (at, lsn) in [(4096, checkpoint), (8192, first)] {
        put(&mut file, at, &lsn.to_be_bytes());
        put(&mut file, at + 8, &lsn.to_be_bytes());
        let crc = crc32c::crc32c(&file[at..at + 60]).to_be_bytes();
        put(&mut file, at + 60, &crc);
    }
    let mut lsn = checkpoint;
    let mut is_changed = false;
    for no in 0..6 {
        let how = input.byte();
        let mut records = match how % 4 {
            0 if input.is_over() => break,
            0 | 1 => [&[0xfa, 0, 0][..], &checkpoint.to_be_bytes()].concat(),
            _ => input.bytes(1 + usize::from(how >> 3)).to_vec(),
        };
        if how % 4 == 2
            && let Some(kind) = records.first_mut()
        {
            // A short record of a kind that is no checkpoint.
            *kind = 0x30 | (how >> 4).clamp(1, 15);
            records.resize(1 + usize::from(records[0] & 15), 0x55);
            is_changed |= no == 0;
        }
        let turn = (lsn + records.len() as u64 - first) / capacity as u64;
        let whole = [&records[..], &[1 - (turn % 2) as u8], &crc32c::crc32c(&records).to_be_bytes()].concat();
        if (lsn - checkpoint) as usize + whole.len() > capacity {
            break;
        }
        for (i, byte) in whole.iter().enumerate() {
            file[RING + ((lsn - first) as usize + i) % capacity] = *byte;
        }
        lsn += whole.len() as u64;
    }
    (file, is_changed)
}

/// A log in blocks, of `format`, from the input's bytes.
fn blocks(input: &mut Input<'_>, format: u32) -> Vec<u8> {
    let lsn = 8192 + input.word() as u64 % 1500;
    let mut file = vec![0; 8192];
    put(&mut file, 0, &format.to_be_bytes());
    put(&mut file, 8, &8192u64.to_be_bytes());
    seal_block(&mut file[..BLOCK]);
    for at in [BLOCK, 3 * BLOCK] {
        put(&mut file, at, &u64::from(input.byte()).to_be_bytes());
        put(&mut file, at + 8, &lsn.to_be_bytes());
        put(&mut file, at + 16, &(2048 + lsn % 4096).to_be_bytes());
        seal_block(&mut file[at..at + BLOCK]);
    }
    for no in 0..4u64 {
        let at = (2048 + lsn % 4096) as usize / BLOCK * BLOCK + no as usize * BLOCK;
        let Some(block) = file.get_mut(at..at + BLOCK) else { break };
        let number = (lsn / BLOCK as u64 + no) as u32;
        let count = usize::from(input.byte());
        let content = input.bytes(count);
        block[..4].copy_from_slice(&number.to_be_bytes());
        block[4..6].copy_from_slice(
            &((12 + lsn as usize % BLOCK * usize::from(no == 0) + content.len()) as u16).to_be_bytes(),
        );
        let start = if no == 0 { (lsn as usize % BLOCK).max(12) } else { 12 };
        block[start..].iter_mut().zip(content).for_each(|(byte, new)| *byte = *new);
        seal_block(block);
    }
    file
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let kind = input.byte();
    let (mut log, is_changed) = match kind % 4 {
        0 => ring(&mut input),
        1 => (blocks(&mut input, 0x5048_5953), false),
        2 => (blocks(&mut input, u32::from(kind >> 2) % 7), false),
        _ => (blocks(&mut input, 6), false),
    };
    let edits = !input.is_over();
    input.edit_bytes(&mut log);
    let name = if kind % 4 == 3 { "#innodb_redo/#ib_redo1" } else { "ib_logfile0" };
    let files = [(name, log), ("d/t.ibd", Vec::new())];
    let files = files.map(|(name, bytes)| (PathBuf::from("/data").join(name), Arc::new(bytes)));
    let mounted = table::mount_directory(files);
    if is_changed && !edits {
        assert!(
            mounted.is_err_and(|error| error.kind() == ErrorKind::NotClean),
            "a log that goes on passes as clean"
        );
    }
});
