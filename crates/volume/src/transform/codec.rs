//! Compression as a page transform. The codecs are libraries; what they need again and again is kept by thread.

use std::cell::RefCell;

use flate2::{Compress, Decompress, FlushCompress, FlushDecompress, Status};

use super::{Algorithm, Compression, PageId, PageTransform};
use crate::{Error, Result};

thread_local! {
    static ZSTD: RefCell<Option<(u8, zstd::bulk::Compressor<'static>)>> = const { RefCell::new(None) };
    static UNZSTD: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

impl PageTransform for Compression {
    fn forward(&self, page: PageId, input: &[u8], output: &mut Vec<u8>, limit: usize) -> Result<bool> {
        let failed = |why: &dyn std::fmt::Display| {
            Error::invalid(format!("{page} cannot be compressed with {self}: {why}"))
        };
        match self {
            Compression::None => Ok(false),
            Compression::Lz4 => {
                output.resize(lz4_flex::block::get_maximum_output_size(input.len()), 0);
                let bytes = lz4_flex::block::compress_into(input, output).map_err(|error| failed(&error))?;
                output.truncate(bytes);
                Ok(bytes <= limit)
            }
            Compression::Zstd(level) => {
                output.resize(limit, 0);
                // The library's only error here is that the result does not fit.
                Ok(compress_zstd(*level, input, output).map_err(|error| failed(&error))?.is_some())
            }
            Compression::Zlib(level) => {
                output.resize(limit, 0);
                let mut zlib = Compress::new(flate2::Compression::new(u32::from(*level)), true);
                let status =
                    zlib.compress(input, output, FlushCompress::Finish).map_err(|error| failed(&error))?;
                output.truncate(zlib.total_out() as usize);
                Ok(status == Status::StreamEnd)
            }
        }
    }

    fn inverse(&self, page: PageId, input: &[u8], output: &mut [u8]) -> Result<()> {
        decompress(self.algorithm(), page, input, output)
    }
}

/// `None` if the result is longer than `output`.
fn compress_zstd(level: u8, input: &[u8], output: &mut Vec<u8>) -> std::io::Result<Option<()>> {
    ZSTD.with_borrow_mut(|kept| {
        let compressor = match kept {
            Some((known, compressor)) if *known == level => compressor,
            _ => &mut kept.insert((level, zstd::bulk::Compressor::new(i32::from(level))?)).1,
        };
        match compressor.compress_to_buffer(input, output.as_mut_slice()) {
            Ok(bytes) => {
                output.truncate(bytes);
                Ok(Some(()))
            }
            Err(_) => Ok(None),
        }
    })
}

/// Decompresses a page of exactly `output.len()` bytes.
pub(super) fn decompress(algorithm: Algorithm, page: PageId, input: &[u8], output: &mut [u8]) -> Result<()> {
    let found = match algorithm {
        Algorithm::None => Err("it is not compressed".to_owned()),
        Algorithm::Lz4 => lz4_flex::block::decompress_into(input, output).map_err(|error| error.to_string()),
        Algorithm::Zstd => decompress_zstd(input, output).map_err(|error| error.to_string()),
        Algorithm::Zlib => {
            let mut zlib = Decompress::new(true);
            match zlib.decompress(input, output, FlushDecompress::Finish) {
                Ok(Status::StreamEnd) => Ok(zlib.total_out() as usize),
                Ok(_) => Err("the stream does not end with the page".to_owned()),
                Err(error) => Err(error.to_string()),
            }
        }
    };
    match found {
        Ok(bytes) if bytes == output.len() => Ok(()),
        Ok(bytes) => {
            Err(Error::corrupted(format!("{page}: {algorithm} gave {bytes} of {} bytes", output.len())))
        }
        Err(why) => Err(Error::corrupted(format!("{page}: {algorithm} cannot read it: {why}"))),
    }
}

fn decompress_zstd(input: &[u8], output: &mut [u8]) -> std::io::Result<usize> {
    UNZSTD.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            None => kept.insert(zstd::bulk::Decompressor::new()?),
        };
        decompressor.decompress_to_buffer(input, output)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: PageId = PageId { object: 3, page: 9 };

    fn all() -> [Compression; 5] {
        [
            Compression::Lz4,
            Compression::Zstd(1),
            Compression::Zstd(19),
            Compression::Zlib(1),
            Compression::Zlib(9),
        ]
    }

    #[test]
    fn pages_come_back_from_every_codec() {
        let page: Vec<u8> = (0..16384_u32).map(|i| (i / 7 % 31) as u8).collect();
        for codec in all() {
            let mut packed = Vec::new();
            assert!(codec.forward(PAGE, &page, &mut packed, page.len()).unwrap(), "{codec}");
            assert!(packed.len() < page.len() / 2, "{codec}: {}", packed.len());
            let mut back = vec![0xee; page.len()];
            codec.inverse(PAGE, &packed, &mut back).unwrap();
            assert_eq!(back, page, "{codec}");
        }
    }

    #[test]
    fn results_beyond_the_limit_are_left_out() {
        let mut random = tanada_base::SplitMix64::new(1);
        let noise: Vec<u8> = (0..16384).map(|_| random.next_u64() as u8).collect();
        let text: Vec<u8> = noise.iter().map(|byte| byte % 16).collect();
        for codec in all() {
            let mut packed = Vec::new();
            assert!(!codec.forward(PAGE, &noise, &mut packed, 12000).unwrap(), "{codec}");
            assert!(!codec.forward(PAGE, &text, &mut packed, 100).unwrap(), "{codec}");
        }
        assert!(!Compression::None.forward(PAGE, &text, &mut Vec::new(), 16384).unwrap());
    }

    #[test]
    fn pages_of_other_lengths_are_refused() {
        let page = vec![7; 8192];
        for codec in all() {
            let mut packed = Vec::new();
            assert!(codec.forward(PAGE, &page, &mut packed, page.len()).unwrap());
            for len in [0, 4096, 8191, 8193, 16384] {
                let error = codec.inverse(PAGE, &packed, &mut vec![0; len]).unwrap_err();
                assert_eq!(error.kind(), crate::ErrorKind::Corrupted, "{codec} {len}");
            }
        }
    }
}
