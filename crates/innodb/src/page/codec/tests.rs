//! Pages that servers wrote (`images/`), whole and damaged.
//!
//! An image is stored without the zeros before its last 32 bytes.

use proptest::prelude::*;

use super::super::checksum::seal;
use super::*;

const SIZE: usize = 16384;

struct Sample {
    name: &'static str,
    image: Vec<u8>,
    codec: PageCodec,
    number: PageNo,
}

fn sample(name: &'static str, stored: &[u8], format: PageFormat, space: u32, number: u32) -> Sample {
    let (head, tail) = stored.split_at(stored.len() - 32);
    let mut image = vec![0; SIZE];
    image[..head.len()].copy_from_slice(head);
    image[SIZE - 32..].copy_from_slice(tail);
    let codec = PageCodec {
        format,
        page_size: PageSize(SIZE as u32),
        space: SpaceId(space),
        verify: true,
        log_end: None,
        logged: None,
    };
    Sample { name, image, codec, number: PageNo(number) }
}

macro_rules! image {
    ($name:literal, $format:expr, $space:literal, $number:literal) => {
        sample($name, include_bytes!(concat!("images/", $name, ".page")), $format, $space, $number)
    };
}

/// The first leaf of six equal tables of MariaDB 10.11.
fn full_crc32_samples() -> Vec<Sample> {
    let format = |algorithm| PageFormat::FullCrc32(Some(algorithm));
    vec![
        image!("mariadb-full_crc32-zlib", format(Algorithm::Zlib), 5, 3),
        image!("mariadb-full_crc32-lz4", format(Algorithm::Lz4), 6, 3),
        image!("mariadb-full_crc32-lzo", format(Algorithm::Lzo), 7, 3),
        image!("mariadb-full_crc32-lzma", format(Algorithm::Lzma), 8, 3),
        image!("mariadb-full_crc32-bzip2", format(Algorithm::Bzip2), 9, 3),
        image!("mariadb-full_crc32-snappy", format(Algorithm::Snappy), 10, 3),
    ]
}

/// The same without full_crc32.
fn crc32_samples() -> Vec<Sample> {
    vec![
        image!("mariadb-crc32-zlib", PageFormat::Classic, 11, 3),
        image!("mariadb-crc32-lz4", PageFormat::Classic, 12, 3),
        image!("mariadb-crc32-lzo", PageFormat::Classic, 13, 3),
        image!("mariadb-crc32-lzma", PageFormat::Classic, 14, 3),
        image!("mariadb-crc32-bzip2", PageFormat::Classic, 15, 3),
        image!("mariadb-crc32-snappy", PageFormat::Classic, 16, 3),
    ]
}

/// MySQL 9.7, and MySQL 8.0.28 with `innodb_checksum_algorithm` set to `innodb` and `none`.
fn mysql_samples() -> Vec<Sample> {
    vec![
        image!("mysql-lz4", PageFormat::Classic, 96, 4),
        image!("mysql-zlib", PageFormat::Classic, 11, 4),
        image!("mysql-checksum-innodb", PageFormat::Classic, 0xffff_fffe, 47),
        image!("mysql-checksum-none", PageFormat::Classic, 3, 4),
    ]
}

fn all_samples() -> Vec<Sample> {
    full_crc32_samples().into_iter().chain(crc32_samples()).chain(mysql_samples()).collect()
}

#[test]
fn every_algorithm_of_mariadb_yields_the_same_rows() {
    for sample in full_crc32_samples().iter().chain(&crc32_samples()) {
        let page = sample.codec.decode(&sample.image, sample.number).unwrap().expect(sample.name);
        assert_eq!(u16_at(&page, header::TYPE), page_type::INDEX, "{}", sample.name);
        for row in 1..=60 {
            let text = format!("row number {row}{}", "abc".repeat(row % 30));
            assert!(
                page.windows(text.len()).any(|window| window == text.as_bytes()),
                "{}: {text}",
                sample.name
            );
        }
    }
}

#[test]
fn pages_of_mysql_in_every_form() {
    for sample in mysql_samples() {
        let decoded = sample.codec.decode(&sample.image, sample.number).unwrap();
        assert_eq!(decoded.is_none(), sample.name.contains("checksum"), "{}", sample.name);
        let page = decoded.as_deref().unwrap_or(&sample.image);
        assert_eq!((page.len(), u16_at(page, header::TYPE)), (SIZE, page_type::INDEX), "{}", sample.name);
    }
}

#[test]
fn a_page_read_from_elsewhere_is_refused_by_name() {
    for sample in all_samples() {
        let elsewhere = sample.codec.decode(&sample.image, PageNo(9)).unwrap_err();
        assert_eq!(
            elsewhere,
            PageFault::Misdirected { space: sample.codec.space.0, number: sample.number.0 }
        );
        let other_space = PageCodec { space: SpaceId(999), ..sample.codec.clone() };
        assert!(other_space.decode(&sample.image, sample.number).is_err(), "{}", sample.name);
    }
}

/// A page of a file that was copied later than its log was read as if nothing was wrong.
#[test]
fn a_page_newer_than_the_log_is_refused_in_every_format() {
    for sample in all_samples() {
        let lsn = u64_at(&sample.image, header::LSN);
        let ending = |log_end| PageCodec { log_end: Some(Lsn(log_end)), ..sample.codec.clone() };
        assert_eq!(
            ending(lsn).decode(&sample.image, sample.number),
            sample.codec.decode(&sample.image, sample.number),
            "{}",
            sample.name
        );
        let fault = ending(lsn - 1).decode(&sample.image, sample.number).unwrap_err();
        assert_eq!(fault, PageFault::Newer { lsn: Lsn(lsn), log_end: Lsn(lsn - 1) }, "{}", sample.name);
        assert_eq!(fault.kind(), ErrorKind::NotClean);
        for part in
            [lsn.to_string(), (lsn - 1).to_string(), "FOR EXPORT".to_owned(), "--allow-stale".to_owned()]
        {
            assert!(fault.to_string().contains(&part), "{fault}");
        }
    }
}

#[test]
fn zeros_are_a_free_page_and_an_encrypted_one_is_unsupported() {
    for sample in all_samples() {
        assert_eq!(sample.codec.decode(&[0; SIZE], sample.number), Ok(None));
    }
    let full = &full_crc32_samples()[0];
    let mut image = full.image.clone();
    image[..4].copy_from_slice(&1u32.to_be_bytes());
    let stored = usize::from(u16_at(&image, header::TYPE) & 0x7fff) << 8;
    seal::full_crc32(&mut image[..stored]);
    assert_eq!(full.codec.decode(&image, full.number), Err(PageFault::Encrypted));
    let classic = &crc32_samples()[0];
    for encrypted in [15, 16, 17, page_type::MARIADB_COMPRESSED_AND_ENCRYPTED] {
        let mut image = classic.image.clone();
        image[header::TYPE..header::TYPE + 2].copy_from_slice(&encrypted.to_be_bytes());
        assert_eq!(classic.codec.decode(&image, classic.number), Err(PageFault::Encrypted));
    }
}

#[test]
fn an_unknown_algorithm_is_unsupported() {
    let mut image = crc32_samples()[0].image.clone();
    image[33] = 77;
    assert_eq!(crc32_samples()[0].codec.decode(&image, PageNo(3)), Err(PageFault::UnknownAlgorithm(77)));
    let mysql = &mysql_samples()[0];
    let mut image = mysql.image.clone();
    image[27] = 3;
    assert_eq!(mysql.codec.decode(&image, mysql.number), Err(PageFault::UnknownAlgorithm(3)));
}

#[test]
fn a_short_image_is_an_error() {
    for sample in all_samples() {
        for len in [0, 1, 38, 4096, SIZE - 1] {
            assert!(sample.codec.decode(&sample.image[..len], sample.number).is_err());
        }
    }
}

/// How many bytes of an image the server wrote; what follows is not covered by anything.
fn written(sample: &Sample) -> usize {
    let end = match u16_at(&sample.image, header::TYPE) {
        page_type::MYSQL_COMPRESSED => header::DATA + usize::from(u16_at(&sample.image, 32)),
        page_type::MARIADB_COMPRESSED => header::DATA + 2 + usize::from(u16_at(&sample.image, header::DATA)),
        compressed if compressed & 0x8000 != 0 => usize::from(compressed & 0x7fff) << 8,
        _ => SIZE,
    };
    assert!(end <= SIZE);
    end
}

proptest! {
    /// One changed byte is noticed, or changes nothing: a page is never silently another one.
    #[test]
    fn a_flipped_byte_is_never_returned_as_data(which in 0usize..16, at in any::<prop::sample::Index>(), flip in 1u8..) {
        let sample = all_samples().swap_remove(which);
        // Nothing protects a page without a checksum.
        prop_assume!(sample.name != "mysql-checksum-none");
        let before = sample.codec.decode(&sample.image, sample.number).unwrap().unwrap_or_else(|| sample.image.clone());
        let mut image = sample.image.clone();
        image[at.index(written(&sample))] ^= flip;
        if let Ok(after) = sample.codec.decode(&image, sample.number) {
            let mut after = after.unwrap_or(image);
            let mut before = before;
            // The classic checksums leave out offsets 26 to 33.
            before[26..34].fill(0);
            after[26..34].fill(0);
            prop_assert!(before == after, "{}", sample.name);
        }
    }

    /// Damage that a checksum of its own hides: an error or a page of the right length, no panic.
    #[test]
    fn sealed_damage_is_survived(
        which in 0usize..16,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        verify in any::<bool>(),
    ) {
        let mut sample = all_samples().swap_remove(which);
        sample.codec.verify = verify;
        let end = written(&sample);
        for (at, byte) in changes {
            sample.image[at.index(end)] = byte;
        }
        if let PageFormat::FullCrc32(_) = sample.codec.format {
            let stored = usize::from(u16_at(&sample.image, header::TYPE) & 0x7fff) << 8;
            if (8..=SIZE).contains(&stored) {
                seal::full_crc32(&mut sample.image[..stored]);
            }
        }
        if let Ok(Some(page)) = sample.codec.decode(&sample.image, sample.number) {
            prop_assert_eq!(page.len(), SIZE);
        }
    }

    /// Streams of noise: an error or a full page.
    #[test]
    fn noise_is_survived_by_every_algorithm(noise in prop::collection::vec(any::<u8>(), 0..2000), prefix in 0usize..1200) {
        for sample in full_crc32_samples() {
            let PageFormat::FullCrc32(Some(algorithm)) = sample.codec.format else { unreachable!() };
            let stream = [&sample.image[26..26 + prefix], &noise].concat();
            let mut output = vec![0; SIZE];
            let _ = algorithm.decompress(&stream, &mut output);
        }
    }
}
