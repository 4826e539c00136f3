//! The numbers that assignors reckon with instead of names: partitions, topics and members counted from 0.
//!
//! Members are put in Kafka's order (static ones first, by instance id, then the others by member id), which makes every
//! assignor independent of the order in which it is given its members. Topics that nobody knows, or that nobody wants,
//! are left out here, once for all assignors. Decides nothing about who gets what.

use super::MemberSubscription;
use crate::{Assignment, topics::Topic, topics::Topics};
use std::{cell::OnceCell, collections::HashMap, sync::Arc};

/// A partition that has no owner.
pub(crate) const NOBODY: u32 = u32::MAX;

/// A topic that somebody wants. Its partitions are numbered from `first` on.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) name: &'a Arc<str>,
    pub(crate) topic: &'a Topic,
    pub(crate) first: u32,
    pub(crate) partitions: u32,
}

impl Row<'_> {
    /// The numbers of its partitions.
    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        self.first as usize..(self.first + self.partitions) as usize
    }

    /// The number of one of its partitions; `None` when it has no such partition.
    pub(crate) fn slot(&self, partition: i32) -> Option<usize> {
        let partition = u32::try_from(partition).ok().filter(|p| *p < self.partitions)?;
        Some((self.first + partition) as usize)
    }
}

/// Topics and members as numbers. A member's number is its rank in Kafka's order.
#[derive(Debug)]
pub(crate) struct Layout<'a> {
    pub(crate) rows: Vec<Row<'a>>,
    /// Rank to member.
    pub(crate) members: Vec<&'a MemberSubscription>,
    /// Rank to the index in the slice that the assignor was given.
    indexes: Vec<u32>,
    /// By rank: the rows it wants, ascending.
    pub(crate) subscriptions: Vec<Arc<[u32]>>,
    /// Whether all members want the same rows.
    pub(crate) alike: bool,
    /// How many partitions there are.
    pub(crate) partitions: usize,
    names: Names<'a>,
}

impl<'a> Layout<'a> {
    pub(crate) fn new(topics: &'a Topics, members: &'a [MemberSubscription]) -> Self {
        let indexes = ranked(members);
        let ranked: Vec<_> = indexes.iter().map(|i| &members[*i as usize]).collect();
        let known: Vec<_> = topics.iter().filter(|(_, topic)| topic.partitions > 0).collect();
        let all = Names::new(known.iter().map(|(name, _)| *name).collect());
        let (mut subscriptions, alike) = subscriptions(&all, &ranked);
        let wanted = wanted(known.len(), &subscriptions, alike);
        let rows = rows(&known, &wanted);
        let partitions = rows.last().map_or(0, |row| row.range().end);
        let names = if rows.len() == known.len() {
            all
        } else {
            renumber(&mut subscriptions, &wanted, alike);
            Names::new(rows.iter().map(|row| row.name).collect())
        };
        Self { rows, members: ranked, indexes, subscriptions, alike, partitions, names }
    }

    /// All topics, whoever wants them: for looking at an assignment, not for making one.
    pub(crate) fn of_all(topics: &'a Topics, members: &'a [MemberSubscription]) -> Self {
        let indexes = ranked(members);
        let known: Vec<_> = topics.iter().filter(|(_, topic)| topic.partitions > 0).collect();
        let rows = rows(&known, &vec![true; known.len()]);
        Self {
            partitions: rows.last().map_or(0, |row| row.range().end),
            names: Names::new(rows.iter().map(|row| row.name).collect()),
            rows,
            members: indexes.iter().map(|i| &members[*i as usize]).collect(),
            subscriptions: vec![Arc::from([]); members.len()],
            alike: true,
            indexes,
        }
    }

    /// The index in the slice that the assignor was given.
    pub(crate) fn index(&self, rank: u32) -> Option<usize> {
        self.indexes.get(rank as usize).map(|index| *index as usize)
    }

    /// Follows names that mostly come in the order of the rows to their rows.
    pub(crate) fn follow(&self) -> Follow<'_, 'a> {
        Follow { names: &self.names, last: 0 }
    }

    /// Whether the member of this rank wants this row.
    pub(crate) fn wants(&self, rank: usize, row: u32) -> bool {
        self.alike || self.subscriptions[rank].binary_search(&row).is_ok()
    }

    /// For each row the ranks of the members that want it.
    pub(crate) fn subscribers(&self) -> Subscribers {
        Subscribers::new(self.rows.len(), &self.subscriptions)
    }

    /// Owners by partition number and rank, in the words of the assignor's caller.
    pub(crate) fn assignment(&self, owners: &[u32]) -> Assignment {
        let topics = self.rows.iter().map(|row| {
            let owners = &owners[row.range()];
            let index = |rank: &u32| self.indexes.get(*rank as usize).copied();
            (row.name.clone(), owners.iter().map(index).collect())
        });
        topics.collect()
    }

    /// What [`Layout::assignment`] says, as numbers again. What is not in the layout is left out.
    pub(crate) fn owners(&self, assignment: &Assignment) -> Vec<u32> {
        let mut ranks = vec![NOBODY; self.indexes.len()];
        for (rank, index) in self.indexes.iter().enumerate() {
            ranks[*index as usize] = rank as u32;
        }
        let mut owners = vec![NOBODY; self.partitions];
        let mut follow = self.follow();
        for (name, given) in assignment.topics() {
            let Some(row) = follow.find(name) else { continue };
            for (slot, owner) in self.rows[row as usize].range().zip(given) {
                owners[slot] = owner.and_then(|i| ranks.get(i as usize).copied()).unwrap_or(NOBODY);
            }
        }
        owners
    }
}

/// The members' indexes in Kafka's order. Ties (two members of one id, which no coordinator lets happen) keep theirs.
fn ranked(members: &[MemberSubscription]) -> Vec<u32> {
    let mut indexes: Vec<u32> = (0..members.len() as u32).collect();
    let key = |i: &u32| {
        let member = &members[*i as usize];
        (member.instance_id.is_none(), member.instance_id.as_deref(), member.member_id.as_str())
    };
    indexes.sort_by(|a, b| key(a).cmp(&key(b)));
    indexes
}

/// By rank the topics wanted, and whether all want the same.
fn subscriptions(names: &Names<'_>, members: &[&MemberSubscription]) -> (Vec<Arc<[u32]>>, bool) {
    let Some(first) = members.first() else { return (Vec::new(), true) };
    let first_rows = subscription(names, first);
    let mut alike = true;
    let mut all = Vec::with_capacity(members.len());
    for member in members {
        let rows = if same_names(&first.topics, &member.topics) {
            first_rows.clone()
        } else {
            let rows = subscription(names, member);
            if rows == first_rows { first_rows.clone() } else { rows }
        };
        alike &= Arc::ptr_eq(&rows, &first_rows);
        all.push(rows);
    }
    (all, alike)
}

fn subscription(names: &Names<'_>, member: &MemberSubscription) -> Arc<[u32]> {
    let mut follow = Follow { names, last: 0 };
    let mut rows: Vec<u32> = member.topics.iter().filter_map(|topic| follow.find(topic)).collect();
    if !rows.is_sorted() {
        rows.sort_unstable();
    }
    rows.dedup();
    rows.into()
}

/// Whether two lists are the same text for text, found out by their addresses where they share them.
fn same_names(a: &[Arc<str>], b: &[Arc<str>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b) || a == b)
}

fn wanted(known: usize, subscriptions: &[Arc<[u32]>], alike: bool) -> Vec<bool> {
    let mut wanted = vec![false; known];
    let distinct = if alike { 1 } else { subscriptions.len() };
    for rows in subscriptions.iter().take(distinct) {
        for row in rows.iter() {
            wanted[*row as usize] = true;
        }
    }
    wanted
}

/// The wanted topics, numbered. Stops where the numbers would run out.
fn rows<'a>(known: &[(&'a Arc<str>, &'a Topic)], wanted: &[bool]) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    let mut first = 0u32;
    for ((name, topic), _) in known.iter().zip(wanted).filter(|(_, wanted)| **wanted) {
        let partitions = u32::try_from(topic.partitions).unwrap_or(0).min(NOBODY - 2 - first);
        rows.push(Row { name, topic, first, partitions });
        first += partitions;
    }
    rows
}

/// Turns numbers among all topics into numbers among the wanted ones.
fn renumber(subscriptions: &mut [Arc<[u32]>], wanted: &[bool], alike: bool) {
    let mut next = 0;
    let rows: Vec<u32> = wanted.iter().map(|wanted| (next, next += u32::from(*wanted)).0).collect();
    let renumbered = |old: &[u32]| old.iter().map(|row| rows[*row as usize]).collect::<Arc<[u32]>>();
    if let (true, Some(first)) = (alike, subscriptions.first()) {
        let shared = renumbered(first);
        subscriptions.fill(shared);
    } else {
        for subscription in subscriptions {
            *subscription = renumbered(subscription);
        }
    }
}

/// For each row its subscribers, ascending, in one piece of memory.
#[derive(Debug)]
pub(crate) struct Subscribers {
    starts: Vec<usize>,
    ranks: Vec<u32>,
}

impl Subscribers {
    fn new(rows: usize, subscriptions: &[Arc<[u32]>]) -> Self {
        let mut starts = vec![0; rows + 1];
        for row in subscriptions.iter().flat_map(|s| s.iter()) {
            starts[*row as usize + 1] += 1;
        }
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let mut ranks = vec![0; starts[rows]];
        for (rank, subscription) in subscriptions.iter().enumerate() {
            for row in subscription.iter() {
                let at = &mut next[*row as usize];
                ranks[*at] = rank as u32;
                *at += 1;
            }
        }
        Self { starts, ranks }
    }

    /// The subscribers of a row.
    pub(crate) fn of(&self, row: usize) -> &[u32] {
        &self.ranks[self.starts[row]..self.starts[row + 1]]
    }
}

/// Topic names in order, to be found again.
#[derive(Debug)]
struct Names<'a> {
    sorted: Vec<&'a Arc<str>>,
    by_name: OnceCell<HashMap<&'a str, u32>>,
}

impl<'a> Names<'a> {
    fn new(sorted: Vec<&'a Arc<str>>) -> Self {
        Self { sorted, by_name: OnceCell::new() }
    }

    fn look_up(&self, name: &str) -> Option<u32> {
        let build = || self.sorted.iter().enumerate().map(|(row, name)| (&***name, row as u32)).collect();
        self.by_name.get_or_init(build).get(name).copied()
    }
}

/// Finds names one after the other. Lists of a million partitions are nearly always in the order of the topics, so the
/// next few names are tried before any table is asked.
#[derive(Debug)]
pub(crate) struct Follow<'n, 'a> {
    names: &'n Names<'a>,
    last: usize,
}

impl Follow<'_, '_> {
    /// How many names from the last one found on are tried.
    const NEAR: usize = 5;

    /// The row of this name.
    pub(crate) fn find(&mut self, name: &str) -> Option<u32> {
        let sorted = &self.names.sorted;
        let end = sorted.len().min(self.last + Self::NEAR);
        for (step, candidate) in sorted[self.last..end].iter().enumerate() {
            if std::ptr::eq(candidate.as_ref(), name) || candidate.as_ref() == name {
                self.last += step;
                return Some(self.last as u32);
            }
        }
        let row = self.names.look_up(name)?;
        self.last = row as usize;
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: &str, topics: &[&str]) -> MemberSubscription {
        MemberSubscription {
            member_id: id.into(),
            topics: topics.iter().map(|t| Arc::from(*t)).collect(),
            ..MemberSubscription::default()
        }
    }

    #[test]
    fn static_members_come_first_whatever_their_member_ids() {
        let mut members = vec![member("a", &[]), member("z", &[]), member("y", &[])];
        members[1].instance_id = Some("two".into());
        members[2].instance_id = Some("one".into());
        let topics = Topics::new();
        let layout = Layout::new(&topics, &members);
        let ids: Vec<_> = layout.members.iter().map(|m| m.member_id.as_str()).collect();
        assert_eq!(ids, ["y", "z", "a"]);
    }

    #[test]
    fn topics_that_nobody_wants_or_knows_have_no_row() {
        let topics = Topics::new().with("a", 2).with("b", 3).with("c", 4).with("empty", 0);
        let members = [member("m", &["c", "a", "unknown", "empty", "c"])];
        let layout = Layout::new(&topics, &members);
        let names: Vec<_> = layout.rows.iter().map(|row| row.name.as_ref()).collect();
        assert_eq!(names, ["a", "c"]);
        assert_eq!(layout.subscriptions[0].as_ref(), [0, 1]);
        assert_eq!((layout.partitions, layout.rows[1].range()), (6, 2..6));
        assert_eq!(
            (layout.rows[1].slot(3), layout.rows[1].slot(4), layout.rows[1].slot(-1)),
            (Some(5), None, None)
        );
    }

    #[test]
    fn the_same_topics_in_another_order_are_the_same_subscription() {
        let topics = Topics::new().with("a", 1).with("b", 1);
        let members = [member("m", &["a", "b"]), member("n", &["b", "a", "gone"])];
        assert!(Layout::new(&topics, &members).alike);
        let members = [member("m", &["a", "b"]), member("n", &["b"])];
        let layout = Layout::new(&topics, &members);
        assert!(!layout.alike && layout.wants(1, 1) && !layout.wants(1, 0));
        assert_eq!((layout.subscribers().of(0), layout.subscribers().of(1)), (&[0][..], &[0, 1][..]));
    }

    #[test]
    fn names_are_found_in_any_order() {
        let topics = (0..40).fold(Topics::new(), |topics, i| topics.with(format!("t{i:02}"), 1));
        let members = [member(
            "m",
            &(0..40)
                .map(|i| format!("t{i:02}"))
                .collect::<Vec<_>>()
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>(),
        )];
        let layout = Layout::new(&topics, &members);
        let mut follow = layout.follow();
        for row in [0, 1, 3, 30, 2, 39, 39, 0] {
            assert_eq!(follow.find(&format!("t{row:02}")), Some(row));
        }
        assert_eq!(follow.find("unknown"), None);
    }
}
