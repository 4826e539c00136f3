//! Static members: they come back to what they had, whatever was under way when they went.

use super::rig::*;
use tontine::Error;
use tontine_testkit::proxy::Action;
use tontine_wire::api::{ApiKey, Request};

const ONE: Setting = ("group.instance.id", "one");
const TWO: Setting = ("group.instance.id", "two");
const THREE: Setting = ("group.instance.id", "three");

#[tokio::test]
async fn a_static_member_that_restarts_while_assignments_are_on_their_way_gets_its_share() {
    for protocol in BOTH {
        let stage = Stage::new(&[("t", 3)]).await;
        let mut a = stage.behind_proxy("a", &[protocol, ONE]).subscribe(&["t"]).await;
        settle(&mut [&mut a], &[3]).await;
        let mut b = stage.seat("b", &[protocol, TWO]).subscribe(&["t"]).await;
        settle(&mut [&mut a, &mut b], &[2, 1]).await;
        let held = a.proxy().on(ApiKey::SyncGroup, 1, Action::HoldRequest);
        let mut c = stage.seat("c", &[protocol, THREE]).subscribe(&["t"]).await;
        drive("the plan is on its way", &mut [&mut a, &mut b, &mut c], |_| held.count() == 1).await;
        drop(c);
        let mut c = stage.seat("c2", &[protocol, THREE]).subscribe(&["t"]).await;
        let joined = |stage: &Stage| stage.count("c2", is_join) > 0;
        drive("c is back", &mut [&mut c], |_| joined(&stage)).await;
        held.release();
        settle(&mut [&mut a, &mut b, &mut c], &[1, 1, 1]).await;
    }
}

#[tokio::test]
async fn a_static_member_that_subscribes_again_does_not_fence_itself_when_an_answer_is_lost() {
    for protocol in BOTH {
        let stage = Stage::new(&[("t", 2)]).await;
        let mut a = stage.behind_proxy("a", &[protocol, ONE]).subscribe(&["t"]).await;
        settle(&mut [&mut a], &[2]).await;
        a.consumer.unsubscribe().await.unwrap();
        assert_eq!(stage.count("a", |request| matches!(request, Request::LeaveGroup(_))), 0);
        let cut = a.proxy().on(ApiKey::JoinGroup, 2, Action::DisconnectAnswer);
        let mut a = a.subscribe(&["t"]).await;
        settle(&mut [&mut a], &[2]).await;
        assert_eq!(cut.count(), 2);
        // It is one member all along.
        assert_eq!(stage.broker.group(GROUP).unwrap().members.len(), 1);
    }
}

#[tokio::test]
async fn a_join_of_a_static_member_that_arrives_late_does_not_fence_what_came_after_it() {
    let stage = Stage::new(&[("t", 2)]).await;
    let mut a = stage.behind_proxy("a", &[COOPERATIVE, ONE]).subscribe(&["t"]).await;
    settle(&mut [&mut a], &[2]).await;
    a.consumer.unsubscribe().await.unwrap();
    let mut a = a.subscribe(&["t"]).await;
    settle(&mut [&mut a], &[2]).await;
    // What was sent before under the same name comes through only now.
    let first = stage.asked_by("a").into_iter().filter(is_join).nth(1).unwrap();
    let Request::JoinGroup(late) = first else { unreachable!() };
    let mut old = stage.plain().coordinator(GROUP, "a").await.unwrap();
    let answer = old.call(9, late).await.unwrap();
    assert!(answer.error_code.is_ok(), "{answer:?}");
    let beats = |stage: &Stage| stage.count("a", |request| matches!(request, Request::Heartbeat(_)));
    let before = beats(&stage);
    drive("heartbeats go on", &mut [&mut a], |_| beats(&stage) > before + 3).await;
    stage.produce("t", 0, 1).await;
    drive("a reads on", &mut [&mut a], |seats| !seats[0].got.is_empty()).await;
}

#[tokio::test]
async fn two_consumers_of_one_instance_id_end_the_older_one_once_and_for_all() {
    for protocol in BOTH {
        let stage = Stage::new(&[("t", 2)]).await;
        let mut old = stage.seat("old", &[protocol, ONE]).subscribe(&["t"]).await;
        settle(&mut [&mut old], &[2]).await;
        let mut new = stage.seat("new", &[protocol, ONE]).subscribe(&["t"]).await;
        drive("the newer one has everything", &mut [&mut new], |seats| seats[0].owns().len() == 2).await;
        let ended = old.poll_until_error().await;
        assert!(matches!(&ended, Error::Fenced(why) if why.to_string().contains("`one`")), "{ended:?}");
        let joins = stage.count("old", is_join);
        for _ in 0..10 {
            assert!(matches!(old.try_poll().await, Err(Error::Fenced(_))));
        }
        assert_eq!(stage.count("old", is_join), joins);
        new.poll().await;
    }
}

#[tokio::test]
async fn a_full_group_takes_its_static_members_back_and_nobody_else() {
    let stage = Stage::configured(&[("t", 4)], &[("group.max.size", "2")]).await;
    let mut a = stage.seat("a", &[EAGER, ONE]).subscribe(&["t"]).await;
    let mut b = stage.seat("b", &[EAGER, TWO]).subscribe(&["t"]).await;
    settle(&mut [&mut a, &mut b], &[2, 2]).await;
    drop(b);
    let mut b = stage.seat("b2", &[EAGER, TWO]).subscribe(&["t"]).await;
    settle(&mut [&mut a, &mut b], &[2, 2]).await;
    let mut c = stage.seat("c", &[EAGER]).subscribe(&["t"]).await;
    let refused = c.poll_until_error().await;
    assert!(refused.to_string().contains("GROUP_MAX_SIZE_REACHED"), "{refused}");
    // A seat is free as soon as somebody goes, and the next poll takes it.
    stage.expel("a").await;
    drop(a);
    let joined = async {
        while c.owns().len() + b.owns().len() < 4 || c.owns().is_empty() {
            let _ = c.try_poll().await;
            b.poll().await;
        }
    };
    tokio::time::timeout(LONG, joined).await.expect("c is in");
}

#[tokio::test]
async fn a_static_member_whose_first_answer_was_lost_gets_in_all_the_same() {
    for protocol in BOTH {
        let stage = Stage::new(&[("t", 2)]).await;
        let mut a = stage.behind_proxy("a", &[protocol, ONE]);
        let cut = a.proxy().on(ApiKey::JoinGroup, 1, Action::DisconnectAnswer);
        a = a.subscribe(&["t"]).await;
        settle(&mut [&mut a], &[2]).await;
        assert_eq!(cut.count(), 1);
        assert_eq!(stage.broker.group(GROUP).unwrap().members.len(), 1);
    }
}

#[tokio::test]
async fn a_static_member_keeps_its_place_when_it_unsubscribes_closes_or_crashes_and_loses_it_with_its_session()
 {
    for (end, protocol) in [("close", EAGER), ("unsubscribe", COOPERATIVE), ("crash", EAGER)] {
        let stage = Stage::new(&[("t", 2)]).await;
        let short = [protocol, ONE, ("session.timeout.ms", "400")];
        let mut a = stage.behind_proxy("a", &short).subscribe(&["t"]).await;
        let mut b = stage.seat("b", &[protocol, TWO]).subscribe(&["t"]).await;
        settle(&mut [&mut a, &mut b], &[1, 1]).await;
        let generation = stage.broker.group(GROUP).unwrap().generation;
        match end {
            "close" => a.consumer.close().await.unwrap(),
            "unsubscribe" => a.consumer.unsubscribe().await.unwrap(),
            _ => a.proxy().stall(),
        }
        let group = stage.broker.group(GROUP).unwrap();
        assert_eq!((group.generation, group.members.len()), (generation, 2), "{end}");
        drive("b takes over with the end of the session", &mut [&mut b], |seats| seats[0].owns().len() == 2)
            .await;
    }
}
