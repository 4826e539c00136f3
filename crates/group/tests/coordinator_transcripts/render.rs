//! Answers and records as one line of text, in the words of the transcripts. Fields that a version does not have, and
//! messages for people, are left out.

use crate::embedded::{assignment_text, subscription_text};
use std::fmt::Display;
use tontine_group::{
    coordinator::{Record, consumer::ConsumerRecord},
    topics::Topics,
};
use tontine_wire::{Uuid, api::Response, api::join_group::JoinGroupResponse};

fn option<T: Display>(value: &Option<T>) -> String {
    value.as_ref().map_or("~".to_owned(), T::to_string)
}

fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(";"))
}

/// A topic by name, or by id as `id:name`.
fn topic(name: &str, id: Uuid, topics: &Topics) -> String {
    match topics.name_of(id) {
        Some(name) if !id.is_zero() => format!("id:{name}"),
        Some(_) | None if id.is_zero() => name.to_owned(),
        Some(_) | None => id.to_string(),
    }
}

pub(crate) fn response(response: &Response, version: i16, topics: &Topics) -> String {
    match response {
        Response::JoinGroup(r) => join(r, version),
        Response::SyncGroup(r) => {
            let (kind, name) = (option(&r.protocol_type), option(&r.protocol_name));
            let protocol = if version >= 5 { format!(" type={kind} protocol={name}") } else { String::new() };
            format!("error={}{protocol} assignment={}", r.error_code.0, assignment_text(&r.assignment))
        }
        Response::Heartbeat(r) => format!("error={}", r.error_code.0),
        Response::LeaveGroup(r) => {
            let member = |m: &tontine_wire::api::leave_group::MemberResponse| {
                format!("{}/{}={}", m.member_id, option(&m.group_instance_id), m.error_code.0)
            };
            let members = if version >= 3 {
                format!(" members={}", list(r.members.iter().map(member)))
            } else {
                String::new()
            };
            format!("error={}{members}", r.error_code.0)
        }
        Response::OffsetCommit(r) => {
            let partitions = r.topics.iter().flat_map(|t| {
                let name = topic(&t.name, t.topic_id, topics);
                t.partitions.iter().map(move |p| format!("{name}:{}={}", p.partition_index, p.error_code.0))
            });
            format!("partitions={}", list(partitions))
        }
        Response::OffsetFetch(r) => fetch(r, version, topics),
        Response::OffsetDelete(r) => {
            let partitions = r.topics.iter().flat_map(|t| {
                t.partitions.iter().map(|p| format!("{}:{}={}", t.name, p.partition_index, p.error_code.0))
            });
            format!("error={} partitions={}", r.error_code.0, list(partitions))
        }
        Response::DescribeGroups(r) => r.groups.iter().map(described).collect::<Vec<_>>().join(" "),
        Response::ListGroups(r) => {
            let group = |g: &tontine_wire::api::list_groups::ListedGroup| {
                let mut words = vec![g.group_id.clone(), g.protocol_type.clone()];
                words.extend((version >= 4).then(|| g.group_state.clone()));
                words.extend((version >= 5).then(|| g.group_type.clone()));
                words.join(",")
            };
            // The group without a name belongs to nobody.
            let groups = r.groups.iter().filter(|g| !g.group_id.is_empty()).map(group);
            format!("error={} groups={}", r.error_code.0, list(groups))
        }
        Response::DeleteGroups(r) => {
            format!(
                "results={}",
                list(r.results.iter().map(|g| format!("{}={}", g.group_id, g.error_code.0)))
            )
        }
        Response::ConsumerGroupHeartbeat(r) => {
            let topics_of = |a: &tontine_wire::api::consumer_group_heartbeat::Assignment| {
                places(a.topic_partitions.iter().map(|t| (t.topic_id, &t.partitions)), topics)
            };
            let assignment = option(&r.assignment.as_ref().map(topics_of));
            let member = option(&r.member_id);
            format!(
                "error={} member={member} epoch={} assignment={assignment}",
                r.error_code.0, r.member_epoch
            )
        }
        Response::ConsumerGroupDescribe(r) => {
            r.groups.iter().map(|g| described_consumer(g, topics)).collect::<Vec<_>>().join(" ")
        }
        other => panic!("a coordinator does not answer {other:?}"),
    }
}

fn join(r: &JoinGroupResponse, version: i16) -> String {
    let member = |m: &tontine_wire::api::join_group::JoinGroupResponseMember| {
        format!("{}/{}={}", m.member_id, option(&m.group_instance_id), subscription_text(&m.metadata))
    };
    let kind = if version >= 7 { format!(" type={}", option(&r.protocol_type)) } else { String::new() };
    let skip = if version >= 9 { format!(" skip={}", r.skip_assignment) } else { String::new() };
    format!(
        "error={} generation={}{kind} protocol={} leader={}{skip} member={} members={}",
        r.error_code.0,
        r.generation_id,
        option(&r.protocol_name),
        r.leader,
        r.member_id,
        list(r.members.iter().map(member)),
    )
}

fn fetch(r: &tontine_wire::api::offset_fetch::OffsetFetchResponse, version: i16, topics: &Topics) -> String {
    let line = |place: String, offset: i64, epoch: i32, metadata: &Option<String>, code: i16| {
        format!("{place}={offset}@{epoch}!{}!{code}", option(metadata))
    };
    if version < 8 {
        let offsets = r.topics.iter().flat_map(|t| {
            t.partitions.iter().map(|p| {
                let place = format!("{}:{}", t.name, p.partition_index);
                line(place, p.committed_offset, p.committed_leader_epoch, &p.metadata, p.error_code.0)
            })
        });
        return format!("error={} offsets={}", r.error_code.0, list(offsets));
    }
    let group = &r.groups[0];
    let offsets = group.topics.iter().flat_map(|t| {
        t.partitions.iter().map(|p| {
            let place = format!("{}:{}", topic(&t.name, t.topic_id, topics), p.partition_index);
            line(place, p.committed_offset, p.committed_leader_epoch, &p.metadata, p.error_code.0)
        })
    });
    format!("error={} offsets={}", group.error_code.0, list(offsets))
}

fn described(g: &tontine_wire::api::describe_groups::DescribedGroup) -> String {
    let members = g.members.iter().map(|m| {
        let (subscription, assignment) =
            (subscription_text(&m.member_metadata), assignment_text(&m.member_assignment));
        let instance = option(&m.group_instance_id);
        format!("{}/{instance},{},{},{subscription},{assignment}", m.member_id, m.client_id, m.client_host)
    });
    format!(
        "group={} error={} state={} type={} protocol={} members={}",
        g.group_id,
        g.error_code.0,
        g.group_state,
        g.protocol_type,
        g.protocol_data,
        list(members)
    )
}

pub(crate) fn record(record: &Record, topics: &Topics) -> String {
    match record {
        Record::OffsetCommit(key, value) => {
            let place = format!("OffsetCommit {} {}:{}", key.group, key.topic, key.partition);
            match value {
                None => format!("{place} gone"),
                Some(v) => {
                    let id = topic("", v.topic_id, topics);
                    format!("{place} offset={}@{}!{} id={id}", v.offset, v.leader_epoch, v.metadata)
                }
            }
        }
        Record::Consumer(record) => consumer_record(record, topics),
        Record::GroupMetadata(key, None) => format!("GroupMetadata {} gone", key.group),
        Record::GroupMetadata(key, Some(v)) => {
            let members = v.members.iter().map(|m| {
                let (subscription, assignment) =
                    (subscription_text(&m.subscription), assignment_text(&m.assignment));
                format!(
                    "{}/{},{},{},{},{},{subscription},{assignment}",
                    m.member_id,
                    option(&m.group_instance_id),
                    m.client_id,
                    m.client_host,
                    m.rebalance_timeout,
                    m.session_timeout
                )
            });
            format!(
                "GroupMetadata {} type={} generation={} protocol={} leader={} members={}",
                key.group,
                v.protocol_type,
                v.generation,
                option(&v.protocol),
                option(&v.leader),
                list(members)
            )
        }
    }
}

/// `t2:0.1+u2:0`, sorted; `-` is nothing.
fn places<'a>(partitions: impl Iterator<Item = (Uuid, &'a Vec<i32>)>, topics: &Topics) -> String {
    let shown = partitions.filter(|(_, numbers)| !numbers.is_empty()).map(|(id, numbers)| {
        let numbers: Vec<String> = numbers.iter().map(i32::to_string).collect();
        format!("{}:{}", topic_name(id, topics), numbers.join("."))
    });
    plus(shown.collect())
}

fn plus(mut items: Vec<String>) -> String {
    items.sort();
    if items.is_empty() { "-".to_owned() } else { items.join("+") }
}

fn topic_name(id: Uuid, topics: &Topics) -> String {
    topics.name_of(id).map_or_else(|| id.to_string(), |name| name.to_string())
}

fn described_consumer(
    g: &tontine_wire::api::consumer_group_describe::DescribedGroup,
    topics: &Topics,
) -> String {
    let members = g.members.iter().map(|m| {
        let shown = |a: &tontine_wire::api::consumer_group_describe::Assignment| {
            places(a.topic_partitions.iter().map(|t| (t.topic_id, &t.partitions)), topics)
        };
        let (names, regex) = (m.subscribed_topic_names.join("+"), option(&m.subscribed_topic_regex));
        let (has, target) = (shown(&m.assignment), shown(&m.target_assignment));
        format!(
            "{}/{},{},{names},{regex},{has},{target}",
            m.member_id,
            option(&m.instance_id),
            m.member_epoch
        )
    });
    format!(
        "group={} error={} state={} epoch={} target={} assignor={} members={}",
        g.group_id,
        g.error_code.0,
        g.group_state,
        g.group_epoch,
        g.assignment_epoch,
        g.assignor_name,
        list(members)
    )
}

fn held(partitions: &[tontine_wire::group_records::TopicPartitions], topics: &Topics) -> String {
    let shown = partitions.iter().filter(|t| !t.partitions.is_empty()).map(|t| {
        let epochs = t.assignment_epochs.iter().flatten();
        let each: Vec<String> =
            t.partitions.iter().zip(epochs).map(|(p, epoch)| format!("{p}@{epoch}")).collect();
        format!("{}:{}", topic_name(t.topic_id, topics), each.join("."))
    });
    plus(shown.collect())
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

/// Numbers that are particular to the run are only said to be there.
fn consumer_record(record: &ConsumerRecord, topics: &Topics) -> String {
    match record {
        ConsumerRecord::Group(key, value) => ended(format!("Group {}", key.group_id), value, |v| {
            format!("epoch={} hash={}", v.epoch, yes(v.metadata_hash != 0))
        }),
        ConsumerRecord::Member(key, value) => {
            ended(format!("Member {} {}", key.group_id, key.member_id), value, |v| {
                let classic = v.classic_member_metadata.as_ref().map_or(String::new(), |classic| {
                    let protocols = classic
                        .supported_protocols
                        .iter()
                        .map(|p| format!("{}={}", p.name, subscription_text(&p.metadata)));
                    format!(" session={} protocols={}", classic.session_timeout_ms, list(protocols))
                });
                format!(
                    "instance={} rack={} client={} names={} regex={} rebalance={} assignor={}{classic}",
                    option(&v.instance_id),
                    option(&v.rack_id),
                    v.client_id,
                    list(v.subscribed_topic_names.clone()),
                    option(&v.subscribed_topic_regex),
                    v.rebalance_timeout_ms,
                    option(&v.server_assignor)
                )
            })
        }
        ConsumerRecord::TargetEpoch(key, value) => {
            ended(format!("TargetEpoch {}", key.group_id), value, |v| {
                format!("epoch={} time={}", v.assignment_epoch, yes(v.assignment_timestamp != 0))
            })
        }
        ConsumerRecord::Target(key, value) => {
            ended(format!("Target {} {}", key.group_id, key.member_id), value, |v| {
                places(v.topic_partitions.iter().map(|t| (t.topic_id, &t.partitions)), topics)
            })
        }
        ConsumerRecord::Current(key, value) => {
            ended(format!("Current {} {}", key.group_id, key.member_id), value, |v| {
                format!(
                    "epoch={} previous={} state={} has={} revoking={}",
                    v.member_epoch,
                    v.previous_member_epoch,
                    v.state,
                    held(&v.assigned_partitions, topics),
                    held(&v.partitions_pending_revocation, topics)
                )
            })
        }
        ConsumerRecord::Regex(key, value) => {
            ended(format!("Regex {} {}", key.group_id, key.regular_expression), value, |v| {
                format!("topics={}", list(v.topics.clone()))
            })
        }
    }
}

fn ended<V>(head: String, value: &Option<V>, show: impl Fn(&V) -> String) -> String {
    let rest = value.as_ref().map_or("gone".to_owned(), show);
    format!("{head} {rest}")
}
