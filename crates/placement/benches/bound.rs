//! What no policy can go below: `cargo bench -p tanada-placement --bench bound -- trace=FILE
//! [miss=MS] [copy=MS] [shares=10,20] [skip=q7;q21] [segment=N] [rounds=N]`.
//!
//! A policy that knows the whole trace pays, for each chunk by itself, `miss` for every read while the chunk is not in
//! the fast class and `copy` whenever it comes there; where it lies at first costs nothing. The room of the fast class
//! binds the chunks together. With a price of room for each segment of the trace instead, each chunk's best way is
//! found by itself, and the sum of all less what the room would earn is a bound for every set of prices: Lagrange's
//! relaxation. The prices are raised where more is wanted than there is room for, and lowered elsewhere, for some
//! rounds; the best bound counts.
//!
//! Reads of the queries in `skip` are left out.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;

use tanada_placement::{TraceEvent, TraceReader};

/// How fast prices follow what is wanted.
const STEP: f64 = 0.4;

fn argument<T: std::str::FromStr>(name: &str, default: T) -> T {
    let prefix = format!("{name}=");
    let found = std::env::args().find_map(|argument| argument.strip_prefix(&prefix).map(str::to_owned));
    found.and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// The reads of a chunk: segments, and how many in each.
type ChunkReads = Vec<(usize, f64)>;

/// Best ways under given prices.
#[derive(Debug, Default)]
struct Ways {
    cost: f64,
    misses: f64,
    copies: f64,
    /// Changes of how many chunks lie in the fast class, by segment.
    changes: Vec<f64>,
}

/// Where the best way to a state comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Outside,
    /// It stayed inside since the last read.
    Inside,
    /// It was inside at the last read, left, and came back.
    Again,
}

impl Ways {
    /// Adds a chunk's best way; `prices` are sums up to each segment.
    fn add(&mut self, reads: &ChunkReads, prices: &[f64], (miss, copy): (f64, f64)) {
        let (mut inside, mut outside) = (0.0, 0.0);
        let mut steps = Vec::with_capacity(reads.len());
        let mut next = 0;
        for (segment, count) in reads {
            let stays: f64 = inside + prices[*segment] - prices[next];
            let (from, comes) =
                if outside <= inside { (From::Outside, outside) } else { (From::Again, inside) };
            let (into, cheapest) =
                if stays <= comes + copy { (From::Inside, stays) } else { (from, comes + copy) };
            let (out_of, leaves) =
                if outside <= inside { (From::Outside, outside) } else { (From::Inside, inside) };
            inside = cheapest + prices[segment + 1] - prices[*segment];
            outside = leaves + count * miss;
            steps.push((into, out_of));
            next = segment + 1;
        }
        self.cost += f64::min(inside, outside);
        let mut is_inside = inside < outside;
        for (no, (segment, count)) in reads.iter().enumerate().rev() {
            let (into, out_of) = steps[no];
            if !is_inside {
                self.misses += count;
                is_inside = out_of == From::Inside;
                continue;
            }
            let since = if into == From::Inside {
                no.checked_sub(1).map_or(0, |last| reads[last].0 + 1)
            } else {
                *segment
            };
            self.changes[since] += 1.0;
            self.changes[segment + 1] -= 1.0;
            self.copies += f64::from(u8::from(into != From::Inside));
            is_inside = into != From::Outside;
        }
    }
}

fn main() {
    let path: String = argument("trace", String::new());
    let trace = TraceReader::new(BufReader::new(File::open(&path).unwrap())).unwrap().read().unwrap().0;
    let layout = trace.layout(1 << 20);
    let skip: String = argument("skip", String::new());
    let is_skipped: Vec<bool> =
        trace.queries().iter().map(|query| skip.split(';').any(|name| name == query.name)).collect();
    let segment_ios: u64 = argument("segment", 256);
    let mut chunks: BTreeMap<u32, ChunkReads> = BTreeMap::new();
    let mut ios = 0;
    for event in trace.events() {
        let TraceEvent::Io(io) = event else { continue };
        let Some(chunk) = layout.chunk(io.object, io.offset) else { continue };
        if is_skipped.get(io.query.0 as usize).copied().unwrap_or(false) {
            continue;
        }
        let segment = (ios / segment_ios) as usize;
        let reads = chunks.entry(chunk.0).or_default();
        match reads.last_mut() {
            Some((last, count)) if *last == segment => *count += 1.0,
            _ => reads.push((segment, 1.0)),
        }
        ios += 1;
    }
    let segments = ios.div_ceil(segment_ios) as usize;
    let (miss, copy) = (argument("miss", 1.09), argument("copy", 8.0));
    println!(
        "{ios} I/Os, {} chunks, {segments} segments; {miss} ms a read, {copy} ms a copy",
        layout.chunks()
    );
    println!("| share | static, s | no policy below, s | ratio | reads | copies |");
    let shares = argument("shares", "10,20,30,40,50".to_owned());
    for share in shares.split(',').filter_map(|share| share.parse::<u32>().ok()) {
        let room = f64::from(layout.chunks() * share / 100);
        let mut totals: Vec<f64> =
            chunks.values().map(|reads| reads.iter().map(|(_, count)| count).sum()).collect();
        totals.sort_by(|a, b| b.total_cmp(a));
        let placed_once = totals.iter().skip(room as usize).sum::<f64>() * miss / 1e3;
        let mut prices = vec![0.05; segments];
        let mut best: Option<(f64, Ways)> = None;
        for round in 0..argument("rounds", 300) {
            let mut sums = vec![0.0; segments + 1];
            (0..segments).for_each(|no| sums[no + 1] = sums[no] + prices[no]);
            let mut ways = Ways { changes: vec![0.0; segments + 1], ..Ways::default() };
            chunks.values().for_each(|reads| ways.add(reads, &sums, (miss, copy)));
            let bound = ways.cost - room * sums[segments];
            let step = STEP / (1.0 + f64::from(round) / 20.0);
            let mut wanted = 0.0;
            for (price, change) in prices.iter_mut().zip(&ways.changes) {
                wanted += change;
                *price =
                    (*price * (1.0 + step * ((wanted - room) / room).clamp(-1.0, 2.0))).clamp(1e-6, 100.0);
            }
            if best.as_ref().is_none_or(|(other, _)| bound > *other) {
                best = Some((bound, ways));
            }
        }
        let Some((bound, ways)) = best else { continue };
        let bound = bound / 1e3;
        let ratio = bound / placed_once;
        println!(
            "| {share} | {placed_once:.0} | {bound:.0} | {ratio:.2} | {:.0} | {:.0} |",
            ways.misses, ways.copies
        );
    }
}
