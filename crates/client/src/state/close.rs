//! The end of a consumer: what is still done, and for how long at most.
//!
//! When the application closed it in good order, commits that are under way end first, the brokers' fetch sessions are
//! ended, then everything stops. When the consumer was only dropped, it leaves its group on its own, without a callback
//! and without a commit: nobody knows what the application has handled.

use super::{ConsumerState, Flight};
use crate::{
    Error,
    cluster::{Lane, Target},
};
use std::time::Duration;
use tontine_group::{Instant, member::MembershipOperation};

#[derive(Debug)]
pub(super) struct Closing {
    deadline: Instant,
    sessions_ended: bool,
    finished: bool,
}

impl ConsumerState {
    pub(super) fn close(&mut self, timeout: Duration) {
        if self.closing.is_none() {
            let deadline = self.now + timeout.min(self.settings.request_timeout);
            self.closing = Some(Closing { deadline, sessions_ended: false, finished: false });
        }
        self.run_callbacks_alone();
    }

    pub(super) fn abandon(&mut self) {
        if self.closing.is_some() {
            return;
        }
        let now = self.now;
        if let Some(group) = self.group.as_mut().filter(|group| group.wanted.is_some()) {
            group.wanted = None;
            group.is_leaving = true;
            group.member.leave_with(now, "the consumer was dropped", MembershipOperation::Default);
        }
        // Commits that were asked for before go out or end first: whoever kept their futures learns what became of them.
        self.close(self.settings.request_timeout);
    }

    /// Goes on with closing as far as possible now.
    pub(super) fn finish_closing(&mut self) {
        let Some(closing) = &self.closing else { return };
        if closing.finished {
            return;
        }
        let late = closing.deadline <= self.now;
        if !late && (!self.commits.is_empty() || self.group.as_ref().is_some_and(|group| group.is_leaving)) {
            self.run_callbacks_alone();
            return;
        }
        if !closing.sessions_ended {
            self.end_sessions();
        }
        // Whoever waits for a commit that is late hears of it: nobody else will say so.
        self.fail_commits(&Error::Closed("the consumer"));
        if let Some(closing) = &mut self.closing {
            (closing.sessions_ended, closing.finished) = (true, true);
        }
    }

    /// Tells brokers that their fetch sessions are over; nobody waits for the answer. A broker that is busy with a long
    /// poll would answer too late: its session ends on its own.
    fn end_sessions(&mut self) {
        let timeout = Duration::from_secs(1);
        let idle = self.fetches.nodes.iter_mut().filter(|(_, node)| node.under_way.is_none());
        let ends: Vec<_> = idle.filter_map(|(id, node)| Some((*id, node.session.end()?))).collect();
        for (id, request) in ends {
            let ticket = self.cluster.send(self.now, Target::Node(id), Lane::Fetch, request.into(), timeout);
            self.flights.insert(ticket, Flight::Fetch(id));
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.closing.as_ref().is_some_and(|closing| closing.finished)
    }

    pub(super) fn closing_wake(&self) -> Option<Instant> {
        self.closing.as_ref().map(|closing| closing.deadline)
    }

    /// Ends what has waited too long.
    pub(super) fn expire(&mut self) {
        self.expire_commits();
        self.expire_lookups();
        self.finish_closing();
    }
}
