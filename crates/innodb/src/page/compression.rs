//! The algorithms of page compression. Each turns one stream into exactly one page; what would be longer or shorter is
//! an error, so a stream cannot ask for memory.

use flate2::{Decompress, FlushDecompress, Status};

use super::xz;

/// How a page was compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// zlib stream.
    Zlib,
    /// LZ4 block.
    Lz4,
    /// LZO1X block.
    Lzo,
    /// LZMA2 in an `.xz` container.
    Lzma,
    /// bzip2 stream.
    Bzip2,
    /// Snappy block.
    Snappy,
}

impl Algorithm {
    /// MariaDB's number, in page headers and in tablespace flags (`fil0fil.h`).
    pub(crate) fn of_mariadb(number: u64) -> Option<Algorithm> {
        Some(match number {
            1 => Algorithm::Zlib,
            2 => Algorithm::Lz4,
            3 => Algorithm::Lzo,
            4 => Algorithm::Lzma,
            5 => Algorithm::Bzip2,
            6 => Algorithm::Snappy,
            _ => return None,
        })
    }

    /// MySQL's number (`os/file.h`).
    pub(crate) fn of_mysql(number: u8) -> Option<Algorithm> {
        match number {
            1 => Some(Algorithm::Zlib),
            2 => Some(Algorithm::Lz4),
            _ => None,
        }
    }

    /// Whether full_crc32 pages store the stream's exact length: the decoders of these do not find its end themselves.
    pub(crate) fn needs_exact_length(self) -> bool {
        matches!(self, Algorithm::Lz4 | Algorithm::Lzo | Algorithm::Snappy)
    }

    /// Decompresses `input` into `output`, which must be filled exactly. Bytes after a stream that knows its end are
    /// ignored.
    pub(crate) fn decompress(self, input: &[u8], output: &mut [u8]) -> Result<(), String> {
        let filled = match self {
            Algorithm::Zlib => zlib(input, output)?,
            Algorithm::Lz4 => {
                lz4_flex::block::decompress_into(input, output).map_err(|error| error.to_string())?
            }
            Algorithm::Lzo => {
                lzokay::decompress::decompress(input, output).map_err(|error| format!("{error:?}"))?
            }
            Algorithm::Lzma => return xz::decompress(input, output),
            Algorithm::Bzip2 => bzip2(input, output)?,
            Algorithm::Snappy => {
                snap::raw::Decoder::new().decompress(input, output).map_err(|error| error.to_string())?
            }
        };
        if filled == output.len() {
            Ok(())
        } else {
            Err(format!("{filled} bytes instead of {}", output.len()))
        }
    }
}

fn zlib(input: &[u8], output: &mut [u8]) -> Result<usize, String> {
    let mut stream = Decompress::new(true);
    let status =
        stream.decompress(input, output, FlushDecompress::Finish).map_err(|error| error.to_string())?;
    if status == Status::StreamEnd {
        Ok(stream.total_out() as usize)
    } else {
        Err("the stream does not end".to_owned())
    }
}

fn bzip2(input: &[u8], output: &mut [u8]) -> Result<usize, String> {
    let mut stream = bzip2::Decompress::new(false);
    let status = stream.decompress(input, output).map_err(|error| error.to_string())?;
    if status == bzip2::Status::StreamEnd {
        Ok(stream.total_out() as usize)
    } else {
        Err("the stream does not end".to_owned())
    }
}
