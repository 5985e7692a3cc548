//! Which nodes requests are about.
//!
//! Ranks follow Zipf's law with a shape below 1; its cumulative distribution is inverted as if ranks were continuous.
//! Ranks are scattered over the nodes by a permutation, or lead to the nodes with the most links first.

use tanada_base::SplitMix64;

use super::graph::{Graph, unit};

/// Zipf's law over ranks from 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Zipf {
    ranks: f64,
    /// 1 less the shape.
    exponent: f64,
}

impl Zipf {
    pub(super) fn new(ranks: u64, shape: f64) -> Zipf {
        Zipf { ranks: ranks as f64, exponent: 1.0 - shape }
    }

    pub(super) fn rank(&self, random: &mut SplitMix64) -> u64 {
        let most = (self.ranks + 1.0).powf(self.exponent);
        let value = (1.0 + unit(random) * (most - 1.0)).powf(1.0 / self.exponent);
        (value as u64).clamp(1, self.ranks as u64) - 1
    }
}

/// How nodes of one kind of request are chosen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    zipf: Zipf,
    /// How many of 1,000 requests are not correlated with the outdegree.
    scattered_of_1000: u64,
    multiplier: u64,
}

impl Access {
    /// Zipf's law of this shape; of 1,000 requests so many go to nodes whatever their outdegree.
    pub(super) fn new(nodes: u64, shape: f64, scattered_of_1000: u64) -> Access {
        Access { zipf: Zipf::new(nodes, shape), scattered_of_1000, multiplier: multiplier(nodes) }
    }

    /// A node.
    pub(super) fn choose(&self, graph: &Graph, random: &mut SplitMix64) -> u64 {
        let rank = self.zipf.rank(random);
        if random.below(1000) < self.scattered_of_1000 {
            (u128::from(rank) * u128::from(self.multiplier) % u128::from(graph.nodes)) as u64 + 1
        } else {
            graph.by_outdegree(rank)
        }
    }
}

/// A multiplier that permutes `0..nodes`.
fn multiplier(nodes: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let golden = (nodes as f64 * 0.618_034) as u64 | 1;
    (golden..).find(|candidate| gcd(*candidate, nodes) == 1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattered_ranks_reach_each_node_once() {
        for nodes in [1, 2, 10, 1000, 4096] {
            let multiplier = multiplier(nodes);
            let mut found: Vec<u64> = (0..nodes).map(|rank| rank * multiplier % nodes).collect();
            found.sort_unstable();
            assert!(found.into_iter().eq(0..nodes), "{nodes}");
        }
    }

    #[test]
    fn few_nodes_get_most_requests() {
        let mut random = SplitMix64::new(3);
        let zipf = Zipf::new(10_000, 0.8);
        let ranks: Vec<u64> = (0..20_000).map(|_| zipf.rank(&mut random)).collect();
        assert!(ranks.iter().all(|rank| *rank < 10_000));
        // Of the continuous law: (1,000^0.2 - 1) / (10,000^0.2 - 1), about 0.56.
        let share = ranks.iter().filter(|rank| **rank < 1000).count() as f64 / 20_000.0;
        assert!((0.5..0.63).contains(&share), "{share}");
        let graph = Graph::new(500);
        let access = Access::new(500, 0.7, 950);
        assert!((0..2000).map(|_| access.choose(&graph, &mut random)).all(|id| (1..=500).contains(&id)));
    }
}
