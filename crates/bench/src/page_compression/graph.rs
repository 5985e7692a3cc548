//! The social graph of LinkBench: how many links a node has, where they lead, and what rows hold.
//!
//! The shapes are those of LinkBench's `FBWorkload.properties`: two link types, links of a node to the nodes behind it,
//! payloads of log-normal length (median 128 bytes for nodes, 8 for links). LinkBench draws outdegrees from a file of
//! measured ones, which is not part of this program: here they follow a power law.
//!
//! Half of each payload is noise and half repeats a motif, so that pages compress about 2:1.

use tanada_base::SplitMix64;

/// Link types, as many as LinkBench has by default.
pub(super) const LINK_TYPES: u64 = 2;

/// LinkBench's first link type.
pub(super) const FIRST_LINK_TYPE: u64 = 123_456_789;

/// Shape of the power law of outdegrees: its mean is about four links.
const OUTDEGREE_SHAPE: f64 = 1.3;

/// Most links of a node.
const LARGEST_OUTDEGREE: u64 = 10_000;

/// Median and largest length of a node's payload, in bytes.
const NODE_BYTES: (f64, usize) = (128.0, 4096);

/// Median and largest length of a link's payload, in bytes.
const LINK_BYTES: (f64, usize) = (8.0, 255);

/// Noise and motif alternate in pieces of so many bytes.
const PIECE_BYTES: usize = 16;

/// Bytes of payloads lie in this range, as LinkBench's do; so none has to be quoted in statements but the backslash.
const PAYLOAD_BYTES: std::ops::Range<u64> = 50..220;

/// A number from 0 to 1, 1 not included.
pub(super) fn unit(random: &mut SplitMix64) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Nodes `1..=nodes` and their links.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: u64,
    /// Nodes, those with the most links first.
    by_outdegree: Vec<u32>,
    motif: Vec<u8>,
}

impl Graph {
    pub(super) fn new(nodes: u64) -> Graph {
        let mut by_outdegree: Vec<u32> = (1..=nodes as u32).collect();
        by_outdegree.sort_by_key(|id| std::cmp::Reverse(outdegree(u64::from(*id))));
        let mut random = SplitMix64::new(7);
        let motif = (0..512).map(|_| noise(&mut random)).collect();
        Graph { nodes, by_outdegree, motif }
    }

    /// Links of one type that a node is loaded with: to `id`, `id + 1` and so on.
    pub(super) fn links(id: u64, link_type: u64) -> u64 {
        let (all, no) = (outdegree(id), link_type - FIRST_LINK_TYPE);
        all / LINK_TYPES + u64::from(no < all % LINK_TYPES)
    }

    /// Rows of the three tables after the load: nodes, links, counts.
    pub(super) fn rows(&self) -> [u64; 3] {
        let (mut links, mut counts) = (0, 0);
        for id in 1..=self.nodes {
            for link_type in link_types() {
                let count = Graph::links(id, link_type);
                links += count;
                counts += u64::from(count > 0);
            }
        }
        [self.nodes, links, counts]
    }

    /// The node of rank `rank` by outdegree, from 0.
    pub(super) fn by_outdegree(&self, rank: u64) -> u64 {
        self.by_outdegree.get(rank as usize).map_or(1, |id| u64::from(*id))
    }

    pub(super) fn node_payload(&self, random: &mut SplitMix64) -> Vec<u8> {
        self.payload(random, NODE_BYTES)
    }

    pub(super) fn link_payload(&self, random: &mut SplitMix64) -> Vec<u8> {
        self.payload(random, LINK_BYTES)
    }

    fn payload(&self, random: &mut SplitMix64, (median, largest): (f64, usize)) -> Vec<u8> {
        let len = ((median * normal(random).exp()).round() as usize).clamp(1, largest);
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            bytes.extend((0..PIECE_BYTES).map(|_| noise(random)));
            let from = bytes.len() % (self.motif.len() - PIECE_BYTES);
            bytes.extend_from_slice(&self.motif[from..from + PIECE_BYTES]);
        }
        bytes.truncate(len);
        bytes
    }
}

/// All link types.
pub(super) fn link_types() -> std::ops::Range<u64> {
    FIRST_LINK_TYPE..FIRST_LINK_TYPE + LINK_TYPES
}

/// Links of a node, of all types.
fn outdegree(id: u64) -> u64 {
    let uniform = 1.0 - unit(&mut SplitMix64::new(id));
    (uniform.powf(-1.0 / OUTDEGREE_SHAPE) as u64).min(LARGEST_OUTDEGREE)
}

/// A byte of a payload that no codec foresees.
fn noise(random: &mut SplitMix64) -> u8 {
    let byte = (PAYLOAD_BYTES.start + random.below(PAYLOAD_BYTES.end - PAYLOAD_BYTES.start)) as u8;
    if byte == b'\\' { byte + 1 } else { byte }
}

/// A number of the standard normal distribution (Box and Muller).
fn normal(random: &mut SplitMix64) -> f64 {
    let (radius, angle) = (1.0 - unit(random), unit(random));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outdegrees_follow_a_power_law_of_about_four_links() {
        let graph = Graph::new(20_000);
        let [nodes, links, counts] = graph.rows();
        let mean = links as f64 / nodes as f64;
        assert!((2.0..8.0).contains(&mean), "{mean}");
        assert!(counts >= nodes && counts <= 2 * nodes);
        assert!(outdegree(graph.by_outdegree(0)) > 100 && outdegree(graph.by_outdegree(19_999)) == 1);
        assert_eq!(Graph::links(5, FIRST_LINK_TYPE) + Graph::links(5, FIRST_LINK_TYPE + 1), outdegree(5));
    }

    #[test]
    fn payloads_are_of_the_median_length_and_compress_about_two_to_one() {
        let graph = Graph::new(10);
        let mut random = SplitMix64::new(1);
        let payloads: Vec<Vec<u8>> = (0..999).map(|_| graph.node_payload(&mut random)).collect();
        let mut lengths: Vec<usize> = payloads.iter().map(Vec::len).collect();
        lengths.sort_unstable();
        assert!((100..160).contains(&lengths[500]), "{}", lengths[500]);
        assert!(payloads.iter().flatten().all(|byte| *byte != b'\'' && *byte != b'\\'));
        let all = payloads.concat();
        let motif_bytes = all.len() / 2;
        let packed = zstd::bulk::compress(&all, 1).unwrap().len();
        assert!(packed < all.len() * 2 / 3 && packed > motif_bytes * 2 / 3, "{packed} of {}", all.len());
    }
}
