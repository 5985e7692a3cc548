//! Join types as the outer side sees them.

use datafusion::common::{JoinSide, JoinType};

/// What becomes of an outer row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Joined with each of its matches.
    Inner,
    /// The same; with NULLs if it has none.
    Outer,
    /// Kept if it has a match.
    Semi,
    /// Kept if it has none.
    Anti,
    /// Kept, with whether it has a match.
    Mark,
    /// Not kept: each found row is, once, however many outer rows have its key.
    Found,
}

impl Kind {
    /// The kind of a join whose `outer` side drives; `None` if that side's rows alone cannot decide.
    pub(super) fn of(join_type: JoinType, outer: JoinSide) -> Option<Kind> {
        match (join_type, outer) {
            (JoinType::Inner, JoinSide::Left | JoinSide::Right) => Some(Kind::Inner),
            (JoinType::Left, JoinSide::Left) | (JoinType::Right, JoinSide::Right) => Some(Kind::Outer),
            (JoinType::LeftSemi, JoinSide::Left) | (JoinType::RightSemi, JoinSide::Right) => Some(Kind::Semi),
            (JoinType::LeftAnti, JoinSide::Left) | (JoinType::RightAnti, JoinSide::Right) => Some(Kind::Anti),
            (JoinType::LeftMark, JoinSide::Left) | (JoinType::RightMark, JoinSide::Right) => Some(Kind::Mark),
            (JoinType::LeftSemi, JoinSide::Right) | (JoinType::RightSemi, JoinSide::Left) => {
                Some(Kind::Found)
            }
            _ => None,
        }
    }

    /// Whether columns of matches are handed on.
    pub(super) fn joins(self) -> bool {
        matches!(self, Kind::Inner | Kind::Outer | Kind::Found)
    }

    /// Whether an outer row may be put out when its look-up has ended.
    pub(super) fn waits(self) -> bool {
        matches!(self, Kind::Outer | Kind::Anti | Kind::Mark)
    }

    /// Whether it must be known of each outer row if it has matched.
    pub(super) fn marks(self) -> bool {
        !matches!(self, Kind::Inner | Kind::Found)
    }
}
