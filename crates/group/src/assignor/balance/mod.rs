//! The one algorithm behind `sticky`, `cooperative-sticky` and `uniform`.
//!
//! What it promises, the first before the second:
//!
//! 1. **Balance.** No member could be relieved: wherever one has two partitions more than another, no chain of moves
//!    (a partition from the first to a third member, one of the third's to the second) would even that out. Where all
//!    members want the same topics, this means that no two differ by more than one partition.
//! 2. **Stickiness.** A partition stays with the member that claims it unless balance asks for it. Partitions that have
//!    no owner are dealt first and moved about first; an owned one is moved only when that alone does not do.
//!
//! [`equal`] is the case that all members want the same, where counting is enough. [`mixed`] is the general case.
//! Mirrors what `AbstractStickyAssignor` and the broker's `UniformAssignor` promise, not how they go about it.

mod equal;
mod holdings;
mod home;
mod mixed;
mod paths;
mod pull;

use super::{
    claims::CONTESTED,
    layout::{Layout, NOBODY},
};

/// The owner of each partition, given the one that each has so far ([`NOBODY`] and [`CONTESTED`] for none).
pub(crate) fn balance(layout: &Layout<'_>, claims: &[u32]) -> Vec<u32> {
    if layout.members.is_empty() {
        return vec![NOBODY; layout.partitions];
    }
    let kept = kept(layout, claims);
    if layout.alike { equal::deal(layout, kept) } else { mixed::deal(layout, kept) }
}

/// The claims that can be kept: those of members that still want the topic.
fn kept(layout: &Layout<'_>, claims: &[u32]) -> Vec<u32> {
    let mut kept: Vec<u32> =
        claims.iter().map(|owner| if *owner == CONTESTED { NOBODY } else { *owner }).collect();
    if !layout.alike {
        for (nth, row) in layout.rows.iter().enumerate() {
            let mut last = NOBODY;
            for owner in &mut kept[row.range()] {
                if *owner == last || *owner == NOBODY {
                    continue;
                }
                if layout.wants(*owner as usize, nth as u32) {
                    last = *owner;
                } else {
                    *owner = NOBODY;
                }
            }
        }
    }
    kept
}

/// How many partitions each of `members` members has.
fn loads(members: usize, owners: &[u32]) -> Vec<u32> {
    let mut loads = vec![0; members];
    for owner in owners {
        if let Some(load) = loads.get_mut(*owner as usize) {
            *load += 1;
        }
    }
    loads
}
