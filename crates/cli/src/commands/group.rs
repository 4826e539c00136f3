//! `group`: list, describe, delete.

use super::{
    topic::{admin, report},
    waiting,
};
use crate::args::{Format, GroupCommand};
use crate::output::{Table, print, say};
use serde_json::json;
use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};
use tontine::{
    Admin, Error, TopicPartition,
    admin::{GroupDescription, MemberDescription, OffsetSpec},
    audit::Audit,
};

/// Runs one of the commands.
pub(crate) async fn run(command: GroupCommand) -> Result<ExitCode, Error> {
    match command {
        GroupCommand::List { format, connection } => list(&admin(&connection)?, format).await,
        GroupCommand::Describe { groups, format, connection } => {
            describe(&admin(&connection)?, groups, format).await
        }
        GroupCommand::Audit { files, clock_skew } => Ok(audit(&files, clock_skew)),
        GroupCommand::Delete { groups, connection } => {
            let each = admin(&connection)?.delete_groups(groups).await?;
            Ok(report(each, "deleted"))
        }
    }
}

/// Success when everything fits, failure when something does not or a file cannot be read.
fn audit(files: &[PathBuf], clock_skew: u32) -> ExitCode {
    let mut audit = Audit::new(clock_skew);
    for file in files {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|error| format!("{name}: {error}"));
        if let Err(why) = text.and_then(|text| audit.read(&name, &text)) {
            say(&format!("tontine: {why}"));
            return ExitCode::FAILURE;
        }
    }
    let verdict = audit.judge();
    print(&format!("{verdict}\n"));
    if verdict.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn list(admin: &Admin, format: Format) -> Result<ExitCode, Error> {
    let groups = admin.list_groups().await?;
    match format {
        Format::Json => {
            let one = |g: &tontine::admin::GroupListing| json!({"group": g.id, "type": g.kind, "protocol_type": g.protocol_type, "state": g.state});
            print(&format!("{}\n", json!(groups.iter().map(one).collect::<Vec<_>>())));
        }
        Format::Text => {
            let mut table = Table::new(["GROUP", "TYPE", "PROTOCOL-TYPE", "STATE"]);
            for g in &groups {
                table.row([g.id.clone(), g.kind.clone(), g.protocol_type.clone(), g.state.clone()]);
            }
            print(&table.render());
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn describe(admin: &Admin, groups: Vec<String>, format: Format) -> Result<ExitCode, Error> {
    let mut code = ExitCode::SUCCESS;
    let mut objects = Vec::new();
    let mut text = String::new();
    for group in groups {
        match Picture::take(admin, &group).await {
            Ok(picture) if format == Format::Json => objects.push(picture.json()),
            Ok(picture) => text += &picture.text(),
            Err(error) => {
                say(&format!("tontine: {error}"));
                code = ExitCode::FAILURE;
            }
        }
    }
    if format == Format::Json {
        text = format!("{}\n", json!(objects));
    }
    print(&text);
    Ok(code)
}

/// A group with its offsets, read once.
struct Picture {
    group: GroupDescription,
    lines: BTreeMap<TopicPartition, Line>,
}

/// One partition as the group sees it.
#[derive(Default)]
struct Line {
    committed: Option<i64>,
    end: Option<i64>,
    owner: Option<usize>,
}

impl Line {
    /// Read before the end of the log, the committed offset can only be behind it; a topic that was created again is the
    /// exception, and counts as no lag.
    fn lag(&self) -> Option<i64> {
        Some((self.end? - self.committed?).max(0))
    }
}

impl Picture {
    async fn take(admin: &Admin, id: &str) -> Result<Self, Error> {
        let group = admin.describe_group(id).await?;
        let committed = admin.list_group_offsets(id, None).await?;
        let mut lines: BTreeMap<TopicPartition, Line> = BTreeMap::new();
        for (partition, offset) in committed {
            lines.entry(partition).or_default().committed = Some(offset.offset);
        }
        for (owner, member) in group.members.iter().enumerate() {
            for partition in &member.assignment {
                lines.entry(partition.clone()).or_default().owner = Some(owner);
            }
        }
        let wanted: Vec<_> = lines.keys().map(|p| (p.clone(), OffsetSpec::Latest)).collect();
        for (partition, listed) in admin.list_offsets(wanted).await? {
            // A deleted topic has no end; its committed offset is still worth showing.
            let end = listed.ok().and_then(|l| l.offset);
            lines.entry(partition).or_default().end = end;
        }
        Ok(Self { group, lines })
    }

    fn member(&self, line: &Line) -> Option<&MemberDescription> {
        self.group.members.get(line.owner?)
    }

    fn text(&self) -> String {
        let group = &self.group;
        let mut epoch = group.epoch.map(|epoch| format!(", epoch {epoch}")).unwrap_or_default();
        if let Some(target) = group.target_epoch.filter(|target| Some(*target) != group.epoch) {
            epoch += &format!(", targets of epoch {target}");
        }
        let idle: Vec<_> =
            group.members.iter().filter(|m| m.assignment.is_empty()).map(|m| m.id.as_str()).collect();
        let mut text = format!("group {}: {}, {} members", group.id, group.state, group.members.len());
        if !group.assignor.is_empty() {
            text += &format!(", assignor {}", group.assignor);
        }
        text += &format!("{epoch}\n");
        let heads = [
            "GROUP",
            "TOPIC",
            "PARTITION",
            "CURRENT-OFFSET",
            "LOG-END-OFFSET",
            "LAG",
            "CONSUMER-ID",
            "HOST",
            "CLIENT-ID",
        ];
        let mut table = Table::new(heads);
        let number = |n: Option<i64>| n.map(|n| n.to_string()).unwrap_or_default();
        for (partition, line) in &self.lines {
            let member = self.member(line);
            let of =
                |field: fn(&MemberDescription) -> &String| member.map(field).cloned().unwrap_or_default();
            table.row([
                group.id.clone(),
                partition.topic.to_string(),
                partition.partition.to_string(),
                number(line.committed),
                number(line.end),
                number(line.lag()),
                of(|m| &m.id),
                of(|m| &m.host),
                of(|m| &m.client_id),
            ]);
        }
        text += &table.render();
        for member in idle {
            text += &format!("idle: {member}\n");
        }
        text += &waiting::text(group);
        text
    }

    fn json(&self) -> serde_json::Value {
        let line = |(partition, line): (&TopicPartition, &Line)| {
            json!({
                "topic": &*partition.topic, "partition": partition.partition, "current_offset": line.committed,
                "log_end_offset": line.end, "lag": line.lag(), "consumer_id": self.member(line).map(|m| &m.id),
            })
        };
        let member = |m: &MemberDescription| {
            let assignment: Vec<_> = m.assignment.iter().map(ToString::to_string).collect();
            json!({
                "consumer_id": m.id, "instance_id": m.instance_id, "client_id": m.client_id, "host": m.host,
                "assignment": assignment, "protocol": waiting::protocol(m), "epoch": m.epoch,
                "target": m.target.as_ref().map(|target| target.iter().map(ToString::to_string).collect::<Vec<_>>()),
            })
        };
        json!({
            "group": self.group.id, "state": self.group.state, "assignor": self.group.assignor,
            "epoch": self.group.epoch, "target_epoch": self.group.target_epoch,
            "waiting": waiting::missing(&self.group).iter().map(ToString::to_string).collect::<Vec<_>>(),
            "members": self.group.members.iter().map(member).collect::<Vec<_>>(),
            "partitions": self.lines.iter().map(line).collect::<Vec<_>>(),
        })
    }
}
