//! The chain of transforms: compression, then encryption, and back.

use std::num::NonZeroU16;
use std::sync::Arc;

use super::header::{HEADER_BYTES, Header, padded};
use super::xts::Xts;
use super::{Algorithm, Compression, Form, KeyRing, PageId, PageTransform, codec};
use crate::settings::BLOCK_BYTES;
use crate::{Error, Result};

const BLOCK: usize = BLOCK_BYTES as usize;

/// What is done to new pages of an object.
#[derive(Debug, Clone)]
pub struct Chain {
    volume: [u8; 16],
    compression: Compression,
    cipher: Option<(NonZeroU16, Arc<Xts>)>,
}

/// A page as it is stored: whole blocks.
#[derive(Debug)]
pub struct Sealed {
    /// In which form.
    pub form: Form,
    /// The image.
    pub bytes: Vec<u8>,
}

impl Chain {
    /// The chain that compresses, and encrypts under `key` if there is one, for pages of the volume of this id.
    ///
    /// # Errors
    /// `MissingKey` if the key is not at hand.
    pub fn new(
        volume: [u8; 16],
        compression: Compression,
        key: Option<NonZeroU16>,
        keys: &KeyRing,
    ) -> Result<Chain> {
        let cipher = key.map(|id| keys.cipher(id).map(|cipher| (id, cipher.clone()))).transpose()?;
        Ok(Chain { volume, compression, cipher })
    }

    /// Transforms a page of whole blocks. It never becomes longer.
    ///
    /// # Errors
    /// If a library refuses its settings.
    pub fn seal(&self, id: PageId, page: &[u8]) -> Result<Sealed> {
        if let Some(sealed) = self.compress(id, page)? {
            return Ok(sealed);
        }
        let key = self.cipher.as_ref().map(|(key, _)| *key);
        let mut bytes = Vec::new();
        match &self.cipher {
            Some((_, cipher)) => drop(cipher.forward(id, page, &mut bytes, page.len())?),
            None => bytes.extend_from_slice(page),
        }
        Ok(Sealed { form: Form { algorithm: Algorithm::None, key }, bytes })
    }

    /// The compressed page, if that saves a block at least.
    fn compress(&self, id: PageId, page: &[u8]) -> Result<Option<Sealed>> {
        let Some(limit) = page.len().checked_sub(BLOCK + HEADER_BYTES).filter(|limit| *limit > 0) else {
            return Ok(None);
        };
        let mut image = Vec::new();
        if !self.compression.forward(id, page, &mut image, limit)? {
            return Ok(None);
        }
        let payload_bytes = image.len() as u32;
        image.resize(padded(image.len()), 0);
        if let Some((_, cipher)) = &self.cipher {
            let mut encrypted = Vec::new();
            cipher.forward(id, &image, &mut encrypted, image.len())?;
            image = encrypted;
        }
        let mut bytes = vec![0; (HEADER_BYTES + image.len()).next_multiple_of(BLOCK)];
        bytes[HEADER_BYTES..HEADER_BYTES + image.len()].copy_from_slice(&image);
        let form =
            Form { algorithm: self.compression.algorithm(), key: self.cipher.as_ref().map(|(key, _)| *key) };
        Header { form, page_bytes: page.len() as u32, payload_bytes }.encode(self.volume, id, &mut bytes);
        Ok(Some(Sealed { form, bytes }))
    }
}

/// Makes the page of its stored image, which has the form that its metadata say.
///
/// # Errors
/// `Corrupted` if the image is damaged or another page's, `MissingKey`, `FutureFormat`.
pub fn open(
    volume: [u8; 16],
    keys: &KeyRing,
    id: PageId,
    form: Form,
    stored: &[u8],
    page: &mut [u8],
) -> Result<()> {
    let cipher = form.key.map(|key| keys.cipher(key)).transpose()?;
    if form.algorithm == Algorithm::None {
        if stored.len() != page.len() {
            return Err(Error::corrupted(format!("{id}: {} stored bytes of {}", stored.len(), page.len())));
        }
        match cipher {
            Some(cipher) => cipher.inverse(id, stored, page)?,
            None => page.copy_from_slice(stored),
        }
        return Ok(());
    }
    let (header, image) = Header::decode(volume, id, stored)?;
    if header.form != form || header.page_bytes as usize != page.len() {
        return Err(Error::corrupted(format!(
            "{id} is damaged: its header does not say what the metadata say"
        )));
    }
    let payload_bytes = header.payload_bytes as usize;
    let Some(cipher) = cipher else {
        return codec::decompress(form.algorithm, id, &image[..payload_bytes], page);
    };
    let mut plain = vec![0; image.len()];
    cipher.inverse(id, image, &mut plain)?;
    codec::decompress(form.algorithm, id, &plain[..payload_bytes], page)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ErrorKind;

    const VOLUME: [u8; 16] = [7; 16];
    const ID: PageId = PageId { object: 4, page: 11 };

    fn keys() -> KeyRing {
        let key = |id: u8, first: u8| {
            let bytes: Vec<String> = (0..KEY_BYTES).map(|i| format!("{:02x}", first ^ i as u8)).collect();
            format!("{id};{}\n", bytes.concat())
        };
        KeyRing::parse(&(key(1, 0) + &key(2, 0x80)), "x").unwrap()
    }

    use super::super::KEY_BYTES;

    fn chain(compression: Compression, key: u16) -> Chain {
        Chain::new(VOLUME, compression, NonZeroU16::new(key), &keys()).unwrap()
    }

    fn opened(id: PageId, form: Form, stored: &[u8], page_bytes: usize) -> Result<Vec<u8>> {
        let mut page = vec![0xee; page_bytes];
        open(VOLUME, &keys(), id, form, stored, &mut page).map(|()| page)
    }

    fn compressions() -> impl Strategy<Value = Compression> {
        prop_oneof![
            Just(Compression::None),
            Just(Compression::Lz4),
            (1..=9_u8).prop_map(Compression::Zstd),
            (1..=9_u8).prop_map(Compression::Zlib),
        ]
    }

    /// Pages of which a part is noise and the rest repeats itself.
    fn pages() -> impl Strategy<Value = Vec<u8>> {
        (0..5_u32, 0..=100_u64, any::<u64>()).prop_map(|(size, noise, seed)| {
            let mut random = tanada_base::SplitMix64::new(seed);
            let bytes = 4096_usize << size;
            let noisy = bytes * noise as usize / 100;
            (0..bytes).map(|at| if at < noisy { random.next_u64() as u8 } else { (at / 9) as u8 }).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn pages_come_back_and_never_take_more_blocks(page in pages(), codec in compressions(), key in 0..3_u16) {
            let sealed = chain(codec, key).seal(ID, &page).unwrap();
            prop_assert!(sealed.bytes.len() <= page.len() && sealed.bytes.len().is_multiple_of(BLOCK));
            prop_assert_eq!(sealed.form.algorithm != Algorithm::None, sealed.bytes.len() < page.len());
            prop_assert_eq!(sealed.form.key, NonZeroU16::new(key));
            prop_assert_eq!(sealed.form.is_plain() , sealed.bytes == page && key == 0);
            prop_assert_eq!(opened(ID, sealed.form, &sealed.bytes, page.len()).unwrap(), page);
        }

        #[test]
        fn damage_of_compressed_pages_is_detected(
            page in pages(), codec in compressions(), key in 0..3_u16, at in any::<prop::sample::Index>(), bit in 0..8,
        ) {
            let sealed = chain(codec, key).seal(ID, &page).unwrap();
            prop_assume!(sealed.form.algorithm != Algorithm::None);
            let payload = u32::from_be_bytes(sealed.bytes[12..16].try_into().unwrap()) as usize;
            let mut damaged = sealed.bytes.clone();
            damaged[at.index(HEADER_BYTES + payload)] ^= 1_u8 << bit;
            let kind = opened(ID, sealed.form, &damaged, page.len()).unwrap_err().kind();
            prop_assert!(matches!(kind, ErrorKind::Corrupted | ErrorKind::FutureFormat));
        }
    }

    #[test]
    fn images_of_other_places_and_forms_are_refused() {
        let page = vec![3; 16384];
        let sealed = chain(Compression::Lz4, 1).seal(ID, &page).unwrap();
        assert_eq!(sealed.bytes.len(), BLOCK);
        let elsewhere = [PageId { page: 12, ..ID }, PageId { object: 5, ..ID }];
        for id in elsewhere {
            assert!(opened(id, sealed.form, &sealed.bytes, page.len()).is_err(), "{id}");
        }
        let mut back = vec![0; page.len()];
        assert!(open([8; 16], &keys(), ID, sealed.form, &sealed.bytes, &mut back).is_err());
        for form in [
            Form { algorithm: Algorithm::Zstd, ..sealed.form },
            Form { key: None, ..sealed.form },
            Form { key: NonZeroU16::new(2), ..sealed.form },
            Form { algorithm: Algorithm::None, ..sealed.form },
        ] {
            assert!(opened(ID, form, &sealed.bytes, page.len()).is_err(), "{form:?}");
        }
        assert!(opened(ID, sealed.form, &sealed.bytes, 8192).is_err());
        assert!(opened(ID, sealed.form, &sealed.bytes[..100], page.len()).is_err());
        let mut later = sealed.bytes.clone();
        later[4] = 2;
        let error = opened(ID, sealed.form, &later, page.len()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FutureFormat);
    }

    #[test]
    fn a_page_that_looks_compressed_comes_back_as_it_was() {
        let packed = chain(Compression::Zstd(3), 0).seal(ID, &vec![1; 8192]).unwrap();
        let page = [packed.bytes.clone(), packed.bytes].concat();
        let sealed = chain(Compression::None, 0).seal(ID, &page).unwrap();
        assert!(sealed.form.is_plain());
        assert_eq!(opened(ID, sealed.form, &sealed.bytes, page.len()).unwrap(), page);
    }

    #[test]
    fn keys_that_are_not_at_hand_are_named() {
        let error = Chain::new(VOLUME, Compression::None, NonZeroU16::new(3), &keys()).unwrap_err();
        assert!(error.kind() == ErrorKind::MissingKey && error.to_string().contains("key 3"), "{error}");
        let sealed = chain(Compression::Lz4, 2).seal(ID, &vec![1; 8192]).unwrap();
        let mut page = vec![0; 8192];
        let error = open(VOLUME, &KeyRing::default(), ID, sealed.form, &sealed.bytes, &mut page).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::MissingKey);
    }

    #[test]
    fn random_inputs_of_the_fuzz_target_pass() {
        let mut random = tanada_base::SplitMix64::new(5);
        for _ in 0..400 {
            let len = random.below(9000) as usize;
            let mut input: Vec<u8> = (0..len).map(|_| random.next_u64() as u8 & 0x3f).collect();
            if random.below(2) == 0 && len > 8 {
                input[3..7].copy_from_slice(b"TNPG");
            }
            super::super::fuzzing::stored_page(&input);
        }
    }
}
