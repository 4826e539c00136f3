//! What the application wants to read: topics, a pattern, or partitions of its own choice. One kind at a time.

use super::{Desk, Held};
use crate::{
    Error,
    fetch::position::Position,
    lease::Incarnation,
    state::{Ask, Wanted},
    topic_name::check_topic,
};
use std::{collections::BTreeSet, sync::Arc};
use tontine_group::{Instant, TopicPartition, pattern::TopicPattern};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) enum Interest {
    /// Nothing yet.
    #[default]
    Nothing,
    /// These topics, shared with a group.
    Topics(BTreeSet<Arc<str>>),
    /// Topics that match, shared with a group; those that match now.
    Pattern(BTreeSet<Arc<str>>),
    /// Partitions that the application chose.
    Manual,
}

impl Interest {
    pub(super) fn is_manual(&self) -> bool {
        matches!(self, Self::Manual)
    }

    pub(super) fn is_group(&self) -> bool {
        matches!(self, Self::Topics(_) | Self::Pattern(_))
    }

    pub(super) fn matched(&mut self, topics: BTreeSet<Arc<str>>) {
        if let Self::Pattern(now) = self {
            *now = topics;
        }
    }
}

impl Desk {
    /// The topics that are subscribed; for a pattern those that match now.
    pub fn subscription(&self) -> BTreeSet<Arc<str>> {
        match &self.interest {
            Interest::Topics(topics) | Interest::Pattern(topics) => topics.clone(),
            Interest::Nothing | Interest::Manual => BTreeSet::new(),
        }
    }

    /// The partitions that are assigned.
    pub fn assignment(&self) -> BTreeSet<TopicPartition> {
        self.held.iter().filter(|(_, held)| held.announced).map(|(name, _)| name.clone()).collect()
    }

    /// Wants these topics from now on.
    pub fn subscribe(&mut self, topics: BTreeSet<Arc<str>>) -> Result<(), Error> {
        self.check_may_subscribe()?;
        topics.iter().try_for_each(|topic| check_topic(topic))?;
        self.set_leaving(false);
        for (name, held) in &mut self.held {
            held.wanted = topics.contains(&name.topic);
        }
        self.interest = Interest::Topics(topics.clone());
        self.tell_next_poll();
        self.line_up();
        self.asks.push(Ask::Subscribe(Wanted::Names(topics)));
        Ok(())
    }

    /// Wants every topic that matches from now on.
    pub fn subscribe_pattern(&mut self, pattern: &str) -> Result<(), Error> {
        self.check_may_subscribe()?;
        if pattern.is_empty() {
            return Err(Error::misuse("the pattern is empty: give one that the names of topics match"));
        }
        let regex = TopicPattern::new(pattern)
            .map_err(|why| Error::misuse(format!("the pattern `{pattern}` cannot be read: {why}")))?;
        self.set_leaving(false);
        for (name, held) in &mut self.held {
            held.wanted = regex.matches(&name.topic);
        }
        self.interest = Interest::Pattern(BTreeSet::new());
        self.tell_next_poll();
        self.line_up();
        self.asks.push(Ask::Subscribe(Wanted::Pattern { regex, written: pattern.into() }));
        Ok(())
    }

    /// Nothing is wanted any more; the group is left by [`Desk::leave`].
    pub(crate) fn forget_interest(&mut self) {
        self.interest = Interest::Nothing;
    }

    /// Whether a group has to be left.
    pub fn is_in_group(&self) -> bool {
        self.interest.is_group()
    }

    /// Reads exactly these partitions from now on. Those that were read already go on where they are.
    pub fn assign(&mut self, now: Instant, partitions: BTreeSet<TopicPartition>) -> Result<(), Error> {
        self.check_open()?;
        if self.interest.is_group() {
            return Err(Error::misuse(
                "topics are subscribed: call unsubscribe before assigning partitions by hand",
            ));
        }
        if self.is_leaving() {
            return Err(Error::misuse(
                "the group is not left yet, an unsubscribe or close was dropped: call it to its end before assigning",
            ));
        }
        partitions.iter().try_for_each(|name| check_topic(&name.topic))?;
        if let Some(name) = partitions.iter().find(|name| name.partition < 0) {
            return Err(Error::misuse(format!(
                "{name} has a negative number: name partitions that can exist"
            )));
        }
        if self.auto_commit.is_on() && !self.held.is_empty() {
            self.commit_on_time(now);
        }
        self.interest = if partitions.is_empty() { Interest::Nothing } else { Interest::Manual };
        self.held.retain(|name, _| partitions.contains(name));
        for name in partitions {
            let count = &mut self.manual_count;
            self.held.entry(name).or_insert_with(|| {
                *count += 1;
                Held::by_hand(Incarnation::by_hand(*count))
            });
        }
        let all = self.held.iter().map(|(name, held)| (name.clone(), held.incarnation)).collect();
        self.asks.push(Ask::Assign(all));
        Ok(())
    }

    /// Refuses what needs a group when there is none.
    pub(crate) fn check_group(&self) -> Result<(), Error> {
        self.check_open()?;
        if self.settings.has_group {
            return Ok(());
        }
        Err(Error::configuration("no group.id is set: it is needed to subscribe and to commit"))
    }

    fn check_may_subscribe(&self) -> Result<(), Error> {
        self.check_group()?;
        if self.interest.is_manual() {
            return Err(Error::misuse(
                "partitions were assigned by hand: call unsubscribe before subscribing to topics",
            ));
        }
        Ok(())
    }

    /// Where reading goes on in an assigned partition; `None` while that is being found out.
    pub(crate) fn position(&self, name: &TopicPartition) -> Result<Option<Position>, Error> {
        let held = self.assigned(name)?;
        match (held.position, held.failure()) {
            (None, Some(error)) => Err(error.clone()),
            (position, _) => Ok(position),
        }
    }

    pub(super) fn assigned(&self, name: &TopicPartition) -> Result<&Held, Error> {
        self.check_open()?;
        self.held.get(name).filter(|held| held.announced).ok_or_else(|| not_assigned(name))
    }
}

/// The error of a call about a partition that is not assigned.
pub(super) fn not_assigned(name: &TopicPartition) -> Error {
    Error::misuse(format!(
        "{name} is not assigned to this consumer: only assigned partitions can be used here"
    ))
}
