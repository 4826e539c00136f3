//! The requests of transactional producers, and of those who want to see transactions. Mirrors the handlers of
//! `KafkaApis`, and `TransactionCoordinator` for the order of the checks.

use crate::state::{Answer, BrokerState, Call};
use crate::topics::OFFSETS_TOPIC;
use crate::transactions::{Init, Place, Status};
use std::collections::BTreeSet;
use tontine_wire::ErrorCode;
use tontine_wire::api::add_offsets_to_txn::{AddOffsetsToTxnRequest, AddOffsetsToTxnResponse};
use tontine_wire::api::add_partitions_to_txn::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnRequest, AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
};
use tontine_wire::api::describe_transactions::{
    DescribeTransactionsRequest, DescribeTransactionsResponse, TopicData, TransactionState,
};
use tontine_wire::api::end_txn::{EndTxnRequest, EndTxnResponse};
use tontine_wire::api::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use tontine_wire::api::list_transactions::{
    ListTransactionsRequest, ListTransactionsResponse, TransactionState as ListedTransaction,
};
use tontine_wire::api::txn_offset_commit::{TxnOffsetCommitRequest, TxnOffsetCommitResponse};

/// Whoever was shut out is told so by a code of its own from the first of these versions on.
fn told(code: ErrorCode, version: i16, since: i16) -> ErrorCode {
    match code {
        ErrorCode::PRODUCER_FENCED if version < since => ErrorCode::INVALID_PRODUCER_EPOCH,
        other => other,
    }
}

/// InitProducerId with a transactional id.
pub(super) fn init(
    state: &mut BrokerState,
    call: &Call,
    id: &str,
    request: &InitProducerIdRequest,
) -> InitProducerIdResponse {
    match begin(state, call, id, request) {
        Ok((producer_id, producer_epoch)) => {
            InitProducerIdResponse { producer_id, producer_epoch, ..Default::default() }
        }
        Err(code) => InitProducerIdResponse { error_code: told(code, call.version, 4), ..Default::default() },
    }
}

fn begin(
    state: &mut BrokerState,
    call: &Call,
    id: &str,
    request: &InitProducerIdRequest,
) -> Result<(i64, i16), ErrorCode> {
    let timeout_ms = request.transaction_timeout_ms;
    if id.is_empty() {
        return Err(ErrorCode::INVALID_REQUEST);
    }
    if timeout_ms <= 0 || timeout_ms > state.settings.transaction_max_timeout_ms {
        return Err(ErrorCode::INVALID_TRANSACTION_TIMEOUT);
    }
    state.check_transaction_coordinator(call.now, call.node, id)?;
    let now_ms = state.unix_ms(call.now);
    let had = (request.producer_id >= 0).then_some((request.producer_id, request.producer_epoch));
    let fresh = state.new_producer_id(call.now)?;
    let mut next = state.transactions.init(id, timeout_ms, had, fresh, now_ms)?;
    if let Init::AbortFirst(aborting) = next {
        let pending = state.store_transaction(call.now, id, Some(aborting))?;
        if !state.finish_when_durable(call.now, id, pending) {
            return Err(ErrorCode::CONCURRENT_TRANSACTIONS);
        }
        next = state.transactions.init(id, timeout_ms, None, fresh, now_ms)?;
    }
    let Init::Ready(ready) = next else { return Err(ErrorCode::CONCURRENT_TRANSACTIONS) };
    let identity = (ready.producer_id, ready.epoch);
    state.store_transaction(call.now, id, Some(ready))?;
    Ok(identity)
}

/// AddPartitionsToTxn: all of them or none.
pub(super) fn add_partitions(
    state: &mut BrokerState,
    call: &Call,
    request: &AddPartitionsToTxnRequest,
) -> AddPartitionsToTxnResponse {
    let places: BTreeSet<Place> = request
        .v3_and_below_topics
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|partition| (topic.name.clone(), *partition)))
        .collect();
    let unknown: BTreeSet<Place> = places.iter().filter(|place| !exists(state, place)).cloned().collect();
    let producer = (request.v3_and_below_producer_id, request.v3_and_below_producer_epoch);
    let added = match unknown.is_empty() {
        true => add(state, call, &request.v3_and_below_transactional_id, producer, &places),
        false => Err(ErrorCode::OPERATION_NOT_ATTEMPTED),
    };
    let code = added.err().map_or(ErrorCode::NONE, |code| told(code, call.version, 2));
    let topics = request.v3_and_below_topics.iter().map(|topic| AddPartitionsToTxnTopicResult {
        name: topic.name.clone(),
        results_by_partition: topic
            .partitions
            .iter()
            .map(|partition| AddPartitionsToTxnPartitionResult {
                partition_index: *partition,
                partition_error_code: match unknown.contains(&(topic.name.clone(), *partition)) {
                    true => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                    false => code,
                },
            })
            .collect(),
    });
    AddPartitionsToTxnResponse { results_by_topic_v3_and_below: topics.collect(), ..Default::default() }
}

fn exists(state: &BrokerState, (topic, partition): &Place) -> bool {
    state.topics.get(topic).is_some_and(|topic| topic.partition(*partition).is_some())
}

fn add(
    state: &mut BrokerState,
    call: &Call,
    id: &str,
    producer: (i64, i16),
    places: &BTreeSet<Place>,
) -> Result<(), ErrorCode> {
    state.check_transaction_coordinator(call.now, call.node, id)?;
    match state.transactions.add(id, producer, places, state.unix_ms(call.now))? {
        Some(more) => state.store_transaction(call.now, id, Some(more)).map(|_| ()),
        None => Ok(()),
    }
}

/// AddOffsetsToTxn: the group's partition of `__consumer_offsets` joins the transaction.
pub(super) fn add_offsets(
    state: &mut BrokerState,
    call: &Call,
    request: &AddOffsetsToTxnRequest,
) -> AddOffsetsToTxnResponse {
    state.create_offsets_topic(call.now);
    let place = (OFFSETS_TOPIC.to_owned(), state.shard_of(&request.group_id));
    let producer = (request.producer_id, request.producer_epoch);
    let added = match request.group_id.is_empty() {
        true => Err(ErrorCode::INVALID_GROUP_ID),
        false => add(state, call, &request.transactional_id, producer, &[place].into()),
    };
    let error_code = added.err().map_or(ErrorCode::NONE, |code| told(code, call.version, 2));
    AddOffsetsToTxnResponse { error_code, ..Default::default() }
}

/// EndTxn: answered when it is decided and the marks are written.
pub(super) fn end(state: &mut BrokerState, call: &Call, request: &EndTxnRequest) -> Answer {
    let answer =
        |code| EndTxnResponse { error_code: told(code, call.version, 2), ..Default::default() }.into();
    match decide(state, call, request) {
        Ok(true) => Answer::Now(answer(ErrorCode::NONE)),
        Ok(false) => {
            let ticket = state.park_call(call, None);
            let refusal = answer(ErrorCode::COORDINATOR_NOT_AVAILABLE);
            state.finishing.tell(&request.transactional_id, ticket, answer(ErrorCode::NONE), refusal);
            Answer::Later
        }
        Err(code) => Answer::Now(answer(code)),
    }
}

/// Whether it can be answered at once; otherwise the transaction is on its way to being complete.
fn decide(state: &mut BrokerState, call: &Call, request: &EndTxnRequest) -> Result<bool, ErrorCode> {
    let id = &request.transactional_id;
    state.check_transaction_coordinator(call.now, call.node, id)?;
    let producer = (request.producer_id, request.producer_epoch);
    let now_ms = state.unix_ms(call.now);
    if let Some(decided) = state.transactions.end(id, producer, request.committed, now_ms)? {
        let pending = state.store_transaction(call.now, id, Some(decided))?;
        state.finish_when_durable(call.now, id, pending);
    }
    Ok(!state.finishing.is_waiting(id))
}

/// TxnOffsetCommit: offsets that count when the transaction is committed.
pub(super) fn commit_offsets(
    state: &mut BrokerState,
    call: &Call,
    commit: &TxnOffsetCommitRequest,
) -> TxnOffsetCommitResponse {
    let shard = state.shard_of(&commit.group_id);
    let place = (OFFSETS_TOPIC.to_owned(), shard);
    let producer = (commit.producer_id, commit.producer_epoch);
    let allowed = match commit.group_id.is_empty() {
        true => Err(ErrorCode::INVALID_GROUP_ID),
        false => state.check_coordinator(call.now, call.node, shard),
    };
    let allowed =
        allowed.and_then(|()| state.transactions.may_write(&commit.transactional_id, producer, &place));
    let stored = allowed.and_then(|()| state.store_pending_offsets(call, shard, commit));
    stored.unwrap_or_else(|code| super::refusal::txn_offset_commit(commit, code))
}

/// ListTransactions: those whose coordinator is here, as the filters say.
pub(super) fn list(
    state: &mut BrokerState,
    call: &Call,
    request: &ListTransactionsRequest,
) -> ListTransactionsResponse {
    let now_ms = state.unix_ms(call.now);
    let ids: Vec<String> = state.transactions.iter().map(|(id, _)| id.clone()).collect();
    let mut transaction_states = Vec::new();
    for id in ids {
        if state.check_transaction_coordinator(call.now, call.node, &id).is_err() {
            continue;
        }
        let Some(known) = state.transactions.get(&id) else { continue };
        let (filters, producers) = (&request.state_filters, &request.producer_id_filters);
        let lasts = request.duration_filter < 0
            || (known.started_ms >= 0 && now_ms.saturating_sub(known.started_ms) > request.duration_filter);
        let wanted = (filters.is_empty() || filters.iter().any(|name| name == known.status.name()))
            && (producers.is_empty() || producers.contains(&known.producer_id))
            && lasts;
        if wanted {
            transaction_states.push(ListedTransaction {
                transactional_id: id,
                producer_id: known.producer_id,
                transaction_state: known.status.name().to_owned(),
            });
        }
    }
    let unknown = request.state_filters.iter().filter(|name| !Status::is_known(name)).cloned();
    ListTransactionsResponse {
        unknown_state_filters: unknown.collect(),
        transaction_states,
        ..Default::default()
    }
}

/// DescribeTransactions.
pub(super) fn describe(
    state: &mut BrokerState,
    call: &Call,
    request: &DescribeTransactionsRequest,
) -> DescribeTransactionsResponse {
    let states = request.transactional_ids.iter().map(|id| describe_one(state, call, id));
    DescribeTransactionsResponse { transaction_states: states.collect(), ..Default::default() }
}

fn describe_one(state: &mut BrokerState, call: &Call, id: &str) -> TransactionState {
    let refused = |error_code| TransactionState {
        error_code,
        transactional_id: id.to_owned(),
        producer_id: -1,
        producer_epoch: -1,
        transaction_start_time_ms: -1,
        ..Default::default()
    };
    if let Err(code) = state.check_transaction_coordinator(call.now, call.node, id) {
        return refused(code);
    }
    let Some(known) = state.transactions.get(id) else {
        return refused(ErrorCode::TRANSACTIONAL_ID_NOT_FOUND);
    };
    let mut topics: Vec<TopicData> = Vec::new();
    for (topic, partition) in &known.places {
        match topics.last_mut().filter(|last| last.topic == *topic) {
            Some(last) => last.partitions.push(*partition),
            None => topics.push(TopicData { topic: topic.clone(), partitions: vec![*partition] }),
        }
    }
    TransactionState {
        error_code: ErrorCode::NONE,
        transactional_id: id.to_owned(),
        transaction_state: known.status.name().to_owned(),
        transaction_timeout_ms: known.timeout_ms,
        transaction_start_time_ms: known.started_ms,
        producer_id: known.producer_id,
        producer_epoch: known.epoch,
        topics,
    }
}
