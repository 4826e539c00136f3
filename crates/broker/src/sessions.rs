//! Fetch sessions (KIP-227): a consumer says once which partitions it wants, then only what changed; the broker answers
//! only partitions with news. Mirrors `FetchSession` and `FetchManager`.

use crate::api::fetch::{Item, TopicKey};
use crate::random::Random;
use std::collections::BTreeMap;
use tontine_group::Instant;
use tontine_group::time::Duration;
use tontine_wire::ErrorCode;
use tontine_wire::api::fetch::PartitionData;

/// The session id that means "none".
pub(crate) const NO_SESSION: i32 = 0;
const FULL: i32 = 0;
const FINAL: i32 = -1;

/// A session may be dropped for a new one when nobody used it for this long.
const EVICT_AFTER: Duration = Duration::from_secs(120);

type PartitionKey = (TopicKey, i32);

/// How a fetch belongs to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No session, now or later.
    Sessionless,
    /// Everything is asked for; a session may begin.
    Full,
    /// What changed in this session.
    Incremental(i32),
}

/// What was told of a partition last.
#[derive(Debug, Clone)]
struct Known {
    item: Item,
    /// High watermark and log start offset of the last answer; `None` before it and after an error.
    told: Option<(i64, i64, i64)>,
}

#[derive(Debug)]
struct Session {
    epoch: i32,
    uses_topic_ids: bool,
    last_used: Instant,
    /// In the order in which they are served: what had records goes to the end.
    order: BTreeMap<u64, Known>,
    places: BTreeMap<PartitionKey, u64>,
    next_place: u64,
}

impl Session {
    fn put(&mut self, item: Item) {
        let key = item.key();
        if let Some(known) = self.places.get(&key).and_then(|place| self.order.get_mut(place)) {
            known.item = item;
            return;
        }
        self.push_back(Known { item, told: None });
    }

    fn push_back(&mut self, known: Known) {
        self.places.insert(known.item.key(), self.next_place);
        self.order.insert(self.next_place, known);
        self.next_place += 1;
    }

    fn forget(&mut self, key: &PartitionKey) {
        if let Some(place) = self.places.remove(key) {
            self.order.remove(&place);
        }
    }

    /// Notes what is answered; whether there is any news in it.
    fn tell(&mut self, item: &Item, data: &PartitionData) -> bool {
        let Some(place) = self.places.get(&item.key()).copied() else { return true };
        let Some(known) = self.order.get_mut(&place) else { return true };
        let told = (data.high_watermark, data.last_stable_offset, data.log_start_offset);
        let has_records = data.records.as_ref().is_some_and(|records| !records.is_empty());
        let news = has_records
            || data.error_code.is_err()
            || data.diverging_epoch.epoch >= 0
            || known.told != Some(told);
        known.told = data.error_code.is_ok().then_some(told);
        if has_records && let Some(known) = self.order.remove(&place) {
            self.push_back(known);
        }
        news
    }
}

/// What a request says about its session.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) session_id: i32,
    pub(crate) session_epoch: i32,
    pub(crate) items: Vec<Item>,
    pub(crate) forgotten: Vec<PartitionKey>,
    pub(crate) uses_topic_ids: bool,
}

/// The sessions of one node.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    by_id: BTreeMap<i32, Session>,
}

impl Sessions {
    /// Takes a request: which partitions are fetched, or the error for the whole request.
    pub(crate) fn open(&mut self, now: Instant, opening: Opening) -> Result<(Kind, Vec<Item>), ErrorCode> {
        match opening.session_epoch {
            FINAL => {
                self.by_id.remove(&opening.session_id);
                Ok((Kind::Sessionless, opening.items))
            }
            FULL => {
                self.by_id.remove(&opening.session_id);
                Ok((Kind::Full, opening.items))
            }
            _ => self.go_on(now, opening),
        }
    }

    fn go_on(&mut self, now: Instant, opening: Opening) -> Result<(Kind, Vec<Item>), ErrorCode> {
        let session = self.by_id.get_mut(&opening.session_id).ok_or(ErrorCode::FETCH_SESSION_ID_NOT_FOUND)?;
        if session.epoch != opening.session_epoch {
            return Err(ErrorCode::INVALID_FETCH_SESSION_EPOCH);
        }
        if session.uses_topic_ids != opening.uses_topic_ids {
            return Err(ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR);
        }
        session.epoch = next_epoch(session.epoch);
        session.last_used = now;
        for item in opening.items {
            session.put(item);
        }
        for key in &opening.forgotten {
            session.forget(key);
        }
        let items = session.order.values().map(|known| known.item.clone()).collect();
        if session.order.is_empty() {
            self.by_id.remove(&opening.session_id);
            return Ok((Kind::Sessionless, items));
        }
        Ok((Kind::Incremental(opening.session_id), items))
    }

    /// Begins a session with these partitions, when there is room; its id, or [`NO_SESSION`].
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        slots: usize,
        random: &mut Random,
        items: &[Item],
        uses_topic_ids: bool,
    ) -> i32 {
        if items.is_empty() || !self.make_room(now, slots) {
            return NO_SESSION;
        }
        let mut session = Session {
            epoch: 1,
            uses_topic_ids,
            last_used: now,
            order: BTreeMap::new(),
            places: BTreeMap::new(),
            next_place: 0,
        };
        for item in items {
            session.put(item.clone());
        }
        let id = self.free_id(random);
        self.by_id.insert(id, session);
        id
    }

    fn free_id(&self, random: &mut Random) -> i32 {
        loop {
            let id = (random.next() >> 33) as i32;
            if id > NO_SESSION && !self.by_id.contains_key(&id) {
                return id;
            }
        }
    }

    fn make_room(&mut self, now: Instant, slots: usize) -> bool {
        if self.by_id.len() < slots {
            return true;
        }
        let oldest = self.by_id.iter().min_by_key(|(id, session)| (session.last_used, **id));
        match oldest.map(|(id, session)| (*id, session.last_used)) {
            Some((id, used)) if now - used >= EVICT_AFTER => self.by_id.remove(&id).is_some(),
            _ => false,
        }
    }

    /// Notes what is answered for a partition; whether the answer must name it.
    pub(crate) fn tell(&mut self, id: i32, item: &Item, data: &PartitionData) -> bool {
        self.by_id.get_mut(&id).is_none_or(|session| session.tell(item, data))
    }
}

/// Epochs count up and start again at 1: 0 and -1 mean something else.
fn next_epoch(epoch: i32) -> i32 {
    if epoch == i32::MAX { 1 } else { epoch + 1 }
}
