//! Fetch sessions (KIP-227), by their ids and epochs.

use super::requests::{Bench, batch, shape};
use tontine_testkit::cluster::Cluster;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies, ensure, ensure_eq};
use tontine_wire::ErrorCode;
use tontine_wire::api::fetch::{FetchRequest, ForgottenTopic};

pub fn register(suite: &mut Suite) {
    bodies!(suite, "broker::sessions", one: [
        a_session_answers_only_what_is_new,
        wrong_ids_and_epochs_are_refused_as_a_whole,
        a_session_ends_when_it_is_told_to,
        an_error_is_told_again_until_it_is_gone,
    ]);
}

fn full(bench: &Bench) -> FetchRequest {
    FetchRequest { session_id: 0, session_epoch: 0, ..bench.fetch_request(&[(0, 0), (1, 0), (2, 0)]) }
}

fn next(bench: &Bench, session_id: i32, session_epoch: i32, changed: &[(i32, i64)]) -> FetchRequest {
    FetchRequest { session_id, session_epoch, ..bench.fetch_request(changed) }
}

async fn a_session_answers_only_what_is_new(cluster: Cluster) -> Outcome {
    let mut bench = Bench::new(&cluster, 3).await?;
    let request = full(&bench);
    let first = bench.conn.call(12, request).await?;
    let id = first.session_id;
    ensure!(id > 0, "there is a session");
    ensure_eq!(shape(&first), [(0, 0), (1, 0), (2, 0)], "the full answer");
    let request = next(&bench, id, 1, &[]);
    ensure_eq!(shape(&bench.conn.call(12, request).await?), [], "nothing new");
    bench.produce(1, batch(&["x"])).await?;
    let request = next(&bench, id, 2, &[]);
    ensure_eq!(shape(&bench.conn.call(12, request).await?), [(1, 1)], "one record");
    let request = next(&bench, id, 3, &[(1, 1)]);
    ensure_eq!(shape(&bench.conn.call(12, request).await?), [], "nothing new again");
    bench.produce(0, batch(&["x"])).await?;
    bench.produce(1, batch(&["y"])).await?;
    let mut request = next(&bench, id, 4, &[]);
    let topic = bench.topic.clone();
    request.forgotten_topics_data = vec![ForgottenTopic { topic, partitions: vec![0], ..Default::default() }];
    ensure_eq!(shape(&bench.conn.call(12, request).await?), [(1, 1)], "without the forgotten one");
    Ok(())
}

async fn wrong_ids_and_epochs_are_refused_as_a_whole(cluster: Cluster) -> Outcome {
    let mut bench = Bench::new(&cluster, 3).await?;
    let request = full(&bench);
    let id = bench.conn.call(12, request).await?.session_id;
    for (session, epoch, code) in [
        (id ^ 1, 1, ErrorCode::FETCH_SESSION_ID_NOT_FOUND),
        (id, 2, ErrorCode::INVALID_FETCH_SESSION_EPOCH),
        (id, 1, ErrorCode::NONE),
        (id, 1, ErrorCode::INVALID_FETCH_SESSION_EPOCH),
    ] {
        let request = next(&bench, session, epoch, &[]);
        let answer = bench.conn.call(12, request).await?;
        ensure_eq!(answer.error_code, code, "epoch {epoch}");
        if code.is_err() {
            ensure_eq!((answer.session_id, answer.responses.len()), (0, 0), "an answer that is refused");
        }
    }
    Ok(())
}

async fn a_session_ends_when_it_is_told_to(cluster: Cluster) -> Outcome {
    let mut bench = Bench::new(&cluster, 3).await?;
    let request = full(&bench);
    let id = bench.conn.call(12, request).await?.session_id;
    let request = next(&bench, id, -1, &[]);
    let ended = bench.conn.call(12, request).await?;
    ensure_eq!((ended.error_code, ended.session_id), (ErrorCode::NONE, 0), "the end");
    let request = next(&bench, id, 1, &[]);
    let gone = bench.conn.call(12, request).await?;
    ensure_eq!(gone.error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND, "afterwards");
    let request = full(&bench);
    let id = bench.conn.call(12, request).await?.session_id;
    let again = FetchRequest { session_id: id, ..full(&bench) };
    let other = bench.conn.call(12, again).await?.session_id;
    ensure!(other != id && other > 0, "a full fetch begins another session");
    let request = next(&bench, id, 1, &[]);
    let gone = bench.conn.call(12, request).await?;
    ensure_eq!(gone.error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND, "the session before");
    Ok(())
}

async fn an_error_is_told_again_until_it_is_gone(cluster: Cluster) -> Outcome {
    let mut bench = Bench::new(&cluster, 3).await?;
    let mut request = full(&bench);
    request.topics[0].partitions[0].fetch_offset = 5;
    let id = bench.conn.call(12, request).await?.session_id;
    for epoch in 1..3 {
        let request = next(&bench, id, epoch, &[]);
        let answer = bench.conn.call(12, request).await?;
        let codes: Vec<_> =
            answer.responses.iter().flat_map(|topic| &topic.partitions).map(|data| data.error_code).collect();
        ensure_eq!(codes, [ErrorCode::OFFSET_OUT_OF_RANGE], "epoch {epoch}");
    }
    let request = next(&bench, id, 3, &[(0, 0)]);
    ensure_eq!(shape(&bench.conn.call(12, request).await?), [(0, 0)], "healed");
    Ok(())
}
