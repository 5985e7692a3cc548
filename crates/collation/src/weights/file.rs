//! The data files of weights: `data/unicode-*.zst` and `data/general*.zst`, made by `scripts/make-collations`.
//!
//! A file is the number of levels, the levels, each after its length, and the contractions. A level gives the weights
//! of all code points from 0 on as runs. Numbers are LEB128 but kinds and counts of weights, which take a byte.
//!
//! | kind     | byte | what follows the length of the run             | weights of its n-th code point |
//! |----------|------|------------------------------------------------|--------------------------------|
//! | explicit | 0    | counts of weights, then weights (zigzag, each less the one before it) | as listed |
//! | constant | 1    | w                                              | w                              |
//! | rising   | 2    | w                                              | w + n                          |
//! | pair     | 3    | v, w                                           | v, w + n                       |
//! | empty    | 4    |                                                | none                           |
//!
//! A contraction is its code points and its weights of each level, each list after its length. The number of
//! contractions comes first.

use super::level::{Level, LevelBuilder, Run};
use super::{Contraction, Family};

/// The content of a data file; `None` if it is damaged.
pub(super) fn parse(data: &[u8]) -> Option<Family> {
    let mut reader = Reader(data);
    let levels = (0..reader.byte()?).map(|_| {
        let length = reader.number()? as usize;
        level(Reader(reader.take(length)?))
    });
    let levels = levels.collect::<Option<Vec<_>>>()?;
    let count = reader.number()?;
    let contractions = (0..count).map(|_| contraction(&mut reader, levels.len()));
    let contractions = contractions.collect::<Option<Vec<_>>>()?;
    Some(Family::new(levels, contractions))
}

fn level(mut reader: Reader<'_>) -> Option<Level> {
    let mut level = LevelBuilder::default();
    let mut last = 0u16;
    while !reader.0.is_empty() {
        let (kind, length) = (reader.byte()?, reader.number()?);
        let run = match kind {
            0 => {
                let counts = reader.take(length as usize)?;
                let mut weights = Vec::new();
                for count in counts {
                    weights.clear();
                    for _ in 0..*count {
                        let zigzag = reader.number()?;
                        let difference = (zigzag >> 1) as i32 ^ -((zigzag & 1) as i32);
                        last = u16::try_from(i32::from(last) + difference).ok()?;
                        weights.push(last);
                    }
                    level.explicit(&weights);
                }
                continue;
            }
            1 => Run::Constant(reader.weight()?),
            2 => Run::Rising(reader.weight()?),
            3 => Run::Pair(reader.weight()?, reader.weight()?),
            4 => Run::Empty,
            _ => return None,
        };
        level.run(run, length);
    }
    Some(level.finish())
}

fn contraction(reader: &mut Reader<'_>, levels: usize) -> Option<Contraction> {
    let points = (0..reader.number()?).map(|_| char::from_u32(reader.number()?));
    let points = points.collect::<Option<Vec<_>>>()?;
    let mut weights: [Box<[u16]>; 3] = Default::default();
    for own in weights.iter_mut().take(levels) {
        let count = reader.number()?;
        *own = (0..count).map(|_| reader.weight()).collect::<Option<_>>()?;
    }
    Some(Contraction { points: points.into(), weights })
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn number(&mut self) -> Option<u32> {
        let mut number = 0;
        for shift in (0..28).step_by(7) {
            let byte = self.byte()?;
            number |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn weight(&mut self) -> Option<u16> {
        u16::try_from(self.number()?).ok()
    }
}
