//! A memory within its bytes.
//!
//! 1. All of it is made into parts, each compressed for itself, so that their sizes add up.
//! 2. As long as they are too many together: counts, windows and what was brought are cut to half of what they were
//!    while they take more than a quarter; the largest statement is told in half as many segments; when all have one,
//!    the last of them, the least useful, is left out.

use std::collections::BTreeMap;

use super::code::{FRAME_BYTES, brought, counts, file, followers, names, statement, windows};
use super::{Memory, RememberedStatement};
use crate::costs::Reads;
use crate::layout::{ChunkNo, Layout};

/// Pairs of statements that are told; each takes some 20 bytes.
const MOST_PAIRS: usize = 8192;

/// The part of all bytes that counts, and likewise windows and what was brought, may take.
const SHARE: usize = 4;

pub(super) fn fit(memory: &Memory, layout: &Layout, most: usize) -> Vec<u8> {
    let all_names = names(layout, layout.objects());
    let mut heaviest = memory.clone().followers;
    heaviest.sort_by(|a, b| b.2.total_cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
    heaviest.truncate(MOST_PAIRS);
    heaviest.sort_by_key(|(statement, follower, _)| (*statement, *follower));
    let followers = followers(&Memory {
        followers: heaviest,
        last: memory.last,
        trust: memory.trust,
        ..Memory::default()
    });
    let counts = fit_counts(&memory.counts, layout, most / SHARE);
    let windows = fit_windows(&memory.windows, layout, most / SHARE);
    let brought = fit_brought(memory, layout, most / SHARE);
    let fixed =
        FRAME_BYTES + all_names.len() + followers.len() + counts.len() + windows.len() + brought.len();
    if fixed > most {
        // Names alone are too many: nothing can be told.
        return file(&[names(layout, 0)]);
    }
    let mut parts = vec![all_names, followers, counts, windows, brought];
    parts.extend(fit_statements(&memory.statements, layout, most - fixed));
    file(&parts)
}

fn fit_counts(all: &[(ChunkNo, u64)], layout: &Layout, most: usize) -> Vec<u8> {
    let mut ranked = all.to_vec();
    ranked.sort_unstable_by_key(|(chunk, ios)| (std::cmp::Reverse(*ios), *chunk));
    loop {
        let part = counts(&ranked, layout);
        if part.len() <= most {
            return part;
        }
        ranked.truncate(ranked.len() / 2);
    }
}

/// Those that are left out count as somebody else's, and what is displaced does not come back.
fn fit_brought(memory: &Memory, layout: &Layout, most: usize) -> Vec<u8> {
    let (mut there, mut away) = (&memory.brought[..], &memory.displaced[..]);
    loop {
        let part = brought(there, away, layout);
        if part.len() <= most {
            return part;
        }
        (there, away) = (&there[..there.len() / 2], &away[..away.len() / 2]);
    }
}

fn fit_windows(all: &[Vec<(u32, u32)>], layout: &Layout, most: usize) -> Vec<u8> {
    let mut told = all.to_vec();
    loop {
        let part = windows(&told, layout);
        if part.len() <= most {
            return part;
        }
        let longest = told.iter().map(Vec::len).max().unwrap_or(0);
        if longest <= 8 {
            told.truncate(told.len() / 2);
        }
        for window in &mut told {
            window.sort_unstable_by_key(|(no, ios)| (std::cmp::Reverse(*ios), *no));
            window.truncate((longest / 2).max(4));
            window.sort_unstable();
        }
    }
}

fn fit_statements(all: &[RememberedStatement], layout: &Layout, most: usize) -> Vec<Vec<u8>> {
    let mut told: Vec<(RememberedStatement, Vec<u8>)> =
        all.iter().map(|told| (told.clone(), statement(told, layout))).collect();
    while told.iter().map(|(_, part)| part.len()).sum::<usize>() > most {
        let coarsened = told
            .iter_mut()
            .filter(|(statement, _)| statement.segments.len() > 1)
            .max_by_key(|(_, part)| part.len());
        match coarsened {
            Some((coarse, part)) => {
                halve(coarse);
                *part = statement(coarse, layout);
            }
            None => drop(told.pop()),
        }
    }
    told.into_iter().map(|(_, part)| part).collect()
}

/// Two segments become one.
fn halve(statement: &mut RememberedStatement) {
    let segments = std::mem::take(&mut statement.segments);
    let doubled = |pair: &[Vec<(ChunkNo, Reads)>]| {
        let mut sum: BTreeMap<ChunkNo, Reads> = BTreeMap::new();
        for (chunk, reads) in pair.iter().flatten() {
            let entry = sum.entry(*chunk).or_default();
            *entry = entry.plus(*reads, 1.0);
        }
        sum.into_iter().collect()
    };
    statement.segments = segments.chunks(2).map(doubled).collect();
    statement.segment_ios *= 2.0;
}
