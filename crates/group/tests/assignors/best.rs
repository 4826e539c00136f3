//! The best possible answer, worked out the slow way: a flow of least cost in which evenness is dearer than moves.

use crate::group::Shares;
use tontine_group::{TopicPartition, assignor::MemberSubscription, topics::Topics};

/// More than all moves together can cost.
const UNEVEN: i64 = 10_000;

/// How uneven an answer is and how many partitions it moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Score {
    /// The sum of the squares of the members' shares.
    pub(crate) squares: usize,
    pub(crate) moves: usize,
}

/// The score of the best answer for members that have `before`.
pub(crate) fn best(topics: &Topics, members: &[MemberSubscription], before: &Shares) -> Score {
    let partitions: Vec<_> = topics
        .iter()
        .flat_map(|(name, topic)| (0..topic.partitions).map(|p| TopicPartition::new(name.clone(), p)))
        .filter(|p| members.iter().any(|m| m.topics.contains(&p.topic)))
        .collect();
    let wants: Vec<Vec<bool>> =
        partitions.iter().map(|p| members.iter().map(|m| m.topics.contains(&p.topic)).collect()).collect();
    let home: Vec<Option<usize>> = partitions
        .iter()
        .enumerate()
        .map(|(i, p)| (0..members.len()).find(|m| wants[i][*m] && before[*m].contains(p)))
        .collect();
    let mut owners = vec![None; partitions.len()];
    let mut loads = vec![0i64; members.len()];
    for start in 0..partitions.len() {
        augment(start, &wants, &home, &mut owners, &mut loads);
    }
    let moves = (0..owners.len()).filter(|p| home[*p].is_some() && home[*p] != owners[*p]).count();
    Score { squares: loads.iter().map(|load| (load * load) as usize).sum(), moves }
}

/// Gives one more partition an owner, along the cheapest chain of changes (Bellman and Ford).
fn augment(
    start: usize,
    wants: &[Vec<bool>],
    home: &[Option<usize>],
    owners: &mut [Option<usize>],
    loads: &mut [i64],
) {
    let members = loads.len();
    let price = |p: usize, m: usize| i64::from(home[p].is_some() && home[p] != Some(m));
    let mut cost = vec![i64::MAX / 4; members];
    let mut via: Vec<(usize, Option<usize>)> = vec![(start, None); members];
    for m in (0..members).filter(|m| wants[start][*m]) {
        cost[m] = price(start, m);
    }
    for _ in 0..members {
        for (p, owner) in owners.iter().enumerate() {
            let Some(from) = *owner else { continue };
            for to in (0..members).filter(|m| wants[p][*m]) {
                let through = cost[from] - price(p, from) + price(p, to);
                if cost[from] < i64::MAX / 8 && through < cost[to] {
                    cost[to] = through;
                    via[to] = (p, Some(from));
                }
            }
        }
    }
    let end = (0..members).min_by_key(|m| cost[*m] + UNEVEN * (2 * loads[*m] + 1)).expect("a member");
    loads[end] += 1;
    let mut at = end;
    loop {
        let (p, from) = via[at];
        owners[p] = Some(at);
        let Some(from) = from else { return };
        at = from;
    }
}

/// The score of an answer.
pub(crate) fn score(
    topics: &Topics,
    members: &[MemberSubscription],
    before: &Shares,
    after: &Shares,
) -> Score {
    let squares = after.iter().map(|share| share.len() * share.len()).sum();
    Score { squares, moves: crate::group::moved(topics, members, before, after) }
}
