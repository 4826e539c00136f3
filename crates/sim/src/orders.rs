//! What a script tells an application to do between two polls, word for word.

use crate::{
    client::{Client, Doing},
    fact::{Fact, Life},
    world::World,
};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tontine::{Error, OffsetAndMetadata, TopicPartition};

/// What a commit may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What an application is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// It commits this offset, and does not wait.
    Commit(TopicPartition, i64),
    /// It commits all that it was handed out, and does not wait.
    CommitAll,
    /// It goes on at this offset.
    Seek(TopicPartition, i64),
    /// It pauses these.
    Pause(BTreeSet<TopicPartition>),
    /// It resumes these.
    Resume(BTreeSet<TopicPartition>),
    /// It subscribes to these instead.
    Subscribe(BTreeSet<Arc<str>>),
    /// It works for this long before it polls again.
    Work(Duration),
}

impl World {
    /// Lets an application do something as soon as it is between two polls; one that waits in a poll is woken.
    pub(crate) fn order(&mut self, life: Life, order: Order) {
        self.record(Fact::Done(format!("{life} is told: {order:?}")));
        if let Some(client) = self.clients.get_mut(&life) {
            client.orders.push_back(order);
        }
        self.interrupt(life);
    }

    /// An application that waits in a poll returns from it.
    pub(crate) fn interrupt(&mut self, life: Life) {
        let Some(mut client) = self.clients.remove(&life) else { return };
        if matches!(client.doing, Doing::Polling { .. }) {
            client.doing = Doing::Working { until: self.now };
            self.wake_app(&mut client, self.now);
        }
        self.clients.insert(life, client);
    }

    /// Carries out what was ordered. How long the application works then, if it does.
    pub(crate) fn obey(&mut self, client: &mut Client) -> Option<Duration> {
        while let Some(order) = client.orders.pop_front() {
            if let Order::Work(time) = order {
                return Some(time);
            }
            let result = self.obey_one(client, order);
            self.told(client, result);
        }
        None
    }

    fn obey_one(&mut self, client: &mut Client, order: Order) -> Result<(), Error> {
        let desk = &mut client.desk;
        match order {
            Order::Commit(name, offset) => {
                desk.commit_later(vec![(name, OffsetAndMetadata::new(offset))], TIMEOUT);
                Ok(())
            }
            Order::CommitAll => {
                let offsets = desk.consumed();
                desk.commit_later(offsets, TIMEOUT);
                Ok(())
            }
            Order::Seek(name, offset) => {
                desk.seek(&name, &OffsetAndMetadata::new(offset))?;
                self.record(Fact::Sought(client.life, name, offset));
                Ok(())
            }
            Order::Pause(names) => desk.set_paused(&names, true),
            Order::Resume(names) => desk.set_paused(&names, false),
            Order::Subscribe(topics) => {
                client.subscribed = true;
                desk.subscribe(topics)
            }
            Order::Work(_) => Ok(()),
        }
    }
}
