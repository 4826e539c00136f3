//! The proxy itself: what goes through it is what the broker says, until a rule says otherwise.

use std::time::Duration;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::plain::PlainClient;
use tontine_testkit::proxy::{Action, Proxy};
use tontine_testkit::raw::RawConnection;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies, ensure, ensure_eq, wait};
use tontine_wire::ErrorCode;
use tontine_wire::api::ApiKey;
use tontine_wire::api::heartbeat::HeartbeatRequest;

pub fn register(suite: &mut Suite) {
    bodies!(suite, "proxy", one: [
        a_client_stays_behind_the_proxy_and_rules_act_once,
        a_held_answer_comes_when_it_is_released_and_a_stalled_network_flows_again,
    ]);
}

const LONG: Duration = Duration::from_secs(40);

fn beat() -> HeartbeatRequest {
    HeartbeatRequest { group_id: "nobody".to_owned(), member_id: "nobody".to_owned(), ..Default::default() }
}

async fn a_client_stays_behind_the_proxy_and_rules_act_once(cluster: Cluster) -> Outcome {
    cluster.until_coordinated("nobody").await?;
    let proxy = Proxy::start(&cluster.bootstrap_servers())?;
    let client = PlainClient::new(proxy.bootstrap_servers());
    let address = client.coordinator_address("nobody").await?;
    ensure!(!cluster.bootstrap_servers().contains(&address), "{address} is the proxy's");
    let mut connection = RawConnection::connect(&address, "raw").await?;
    let rule = proxy.on(ApiKey::Heartbeat, 1, Action::AnswerCode(ErrorCode::FENCED_INSTANCE_ID));
    let refused = connection.call(4, beat()).await?;
    ensure_eq!(refused.error_code, ErrorCode::FENCED_INSTANCE_ID, "the proxy's answer");
    let honest = connection.call(4, beat()).await?;
    ensure_eq!(honest.error_code, ErrorCode::UNKNOWN_MEMBER_ID, "the broker's answer");
    ensure_eq!(rule.count(), 1, "requests that met the rule");

    let _rule = proxy.on(ApiKey::Heartbeat, 1, Action::Disconnect);
    ensure!(connection.call(4, beat()).await.is_err(), "a rule disconnects");
    Ok(())
}

async fn a_held_answer_comes_when_it_is_released_and_a_stalled_network_flows_again(
    cluster: Cluster,
) -> Outcome {
    cluster.until_coordinated("nobody").await?;
    let proxy = Proxy::start(&cluster.bootstrap_servers())?;
    let mut connection = PlainClient::new(proxy.bootstrap_servers()).coordinator("nobody", "raw").await?;
    let rule = proxy.on(ApiKey::Heartbeat, 1, Action::HoldAnswer);
    let sent = connection.send(4, beat()).await?;
    rule.met(1, LONG).await?;
    ensure!(!connection.is_answered_within(Duration::from_millis(50)).await?, "the answer is held");
    rule.release();
    ensure_eq!(
        connection.receive(sent).await?.error_code,
        ErrorCode::UNKNOWN_MEMBER_ID,
        "the released answer"
    );

    proxy.stall();
    let sent = connection.send(4, beat()).await?;
    ensure!(!connection.is_answered_within(Duration::from_millis(50)).await?, "nothing flows");
    proxy.flow();
    ensure_eq!(
        connection.receive(sent).await?.error_code,
        ErrorCode::UNKNOWN_MEMBER_ID,
        "the answer afterwards"
    );
    proxy.cut();
    let connection = tokio::sync::Mutex::new(connection);
    wait::until("a cut closes connections", LONG, async || {
        connection.lock().await.call(4, beat()).await.is_err().then_some(())
    })
    .await?;
    Ok(())
}
