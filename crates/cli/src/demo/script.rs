//! What is done to the group, and waiting until it is at rest again.

use super::{
    audit,
    board::Board,
    history::{MemberId, Step, letter},
    member::Member,
};
use std::time::Duration;

/// How long a group may take to come to rest before the demo goes on without it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Members and topic of a running demo.
pub(crate) struct Stage {
    pub(crate) board: Board,
    pub(crate) topic: String,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) partitions: usize,
    pub(crate) members: Vec<Member>,
    pub(crate) steps: Vec<Step>,
    next_id: MemberId,
}

impl Stage {
    pub(crate) fn new(
        board: Board,
        topic: String,
        settings: Vec<(String, String)>,
        partitions: usize,
    ) -> Self {
        Self { board, topic, settings, partitions, members: Vec::new(), steps: Vec::new(), next_id: 0 }
    }

    /// Starts members, and waits until the group is at rest.
    pub(crate) async fn join(&mut self, count: usize) -> std::io::Result<()> {
        let began = self.board.elapsed();
        let cause = if count == 1 { "a member joins".to_owned() } else { format!("{count} members join") };
        let letters: Vec<String> = (self.next_id..).take(count).map(|id| letter(id).to_string()).collect();
        self.board.begin(&format!("{cause}: {}", letters.join(", ")));
        for _ in 0..count {
            self.members.push(Member::start(self.next_id, &self.topic, &self.settings, self.board.clone())?);
            self.next_id += 1;
        }
        self.settle(cause, began).await
    }

    /// The newest member leaves in good order.
    pub(crate) async fn leave(&mut self) -> std::io::Result<()> {
        let Some(member) = self.members.pop() else { return Ok(()) };
        let began = self.board.elapsed();
        self.board.begin(&format!("a member leaves: {}", letter(member.id)));
        member.leave().await;
        self.settle("a member leaves".to_owned(), began).await
    }

    /// The newest member is killed.
    pub(crate) async fn kill(&mut self) -> std::io::Result<()> {
        let Some(member) = self.members.pop() else { return Ok(()) };
        let began = self.board.elapsed();
        self.board.begin(&format!("a member is killed: {}", letter(member.id)));
        member.kill(&self.board).await;
        self.settle("a member is killed".to_owned(), began).await
    }

    /// Waits until the group is at rest, and writes the step down. Fails when a member ends that nobody asked to.
    pub(crate) async fn settle(&mut self, cause: String, began: Duration) -> std::io::Result<()> {
        let ids: Vec<MemberId> = self.members.iter().map(|m| m.id).collect();
        let limit = began + PATIENCE;
        while !self.board.at_rest(&ids, self.partitions) && self.board.elapsed() < limit {
            tokio::time::sleep(Duration::from_millis(2)).await;
            self.members.iter_mut().try_for_each(Member::still_runs)?;
        }
        let step = Step { cause, began, settled: self.board.elapsed() };
        let cost = audit::cost_of(&step, &self.board.events());
        self.board.settle(step.settled, step.settled.saturating_sub(began), &cost);
        self.steps.push(step);
        Ok(())
    }

    /// Everybody leaves in good order, one after the other.
    pub(crate) async fn end(&mut self) {
        while !self.members.is_empty() {
            self.members.remove(0).leave().await;
        }
    }
}
