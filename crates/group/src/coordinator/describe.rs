//! DescribeGroups and ListGroups: what a classic group looks like from outside. Changes nothing.

use super::{
    classic::ClassicGroup,
    consumer::{self, CONSUMER},
    durable::{Group, StoredClassic},
    output::GroupState,
};
use tontine_wire::{
    ErrorCode,
    api::{
        describe_groups::{DescribedGroup, DescribedGroupMember},
        list_groups::{ListGroupsRequest, ListedGroup},
    },
};

/// From this version on a group that is not there is an error, and not only dead.
const NOT_FOUND_SINCE: i16 = 6;

/// How the two protocols are called in lists.
const CLASSIC: &str = "classic";

/// Describes a group that is here.
pub(super) fn describe(group: &ClassicGroup) -> DescribedGroup {
    let stable = group.state() == GroupState::Stable;
    let protocol = group.protocol().filter(|_| stable).unwrap_or_default();
    let members = group.members().map(|member| DescribedGroupMember {
        member_id: member.id.to_string(),
        group_instance_id: member.instance_id.as_deref().map(str::to_owned),
        client_id: member.client.client_id.clone(),
        client_host: member.client.client_host.clone(),
        // While the group comes together it is open which protocol's metadata counts.
        member_metadata: if stable { member.metadata(protocol) } else { Default::default() },
        member_assignment: member.assignment.clone(),
    });
    DescribedGroup {
        group_id: group.id.to_string(),
        group_state: group.state().name().to_owned(),
        protocol_type: group.protocol_type().unwrap_or_default().to_owned(),
        protocol_data: protocol.to_owned(),
        members: members.collect(),
        ..Default::default()
    }
}

/// Describes a group that is not here, or is not of this protocol.
pub(super) fn describe_missing(group: &str, version: i16, is_consumer: bool) -> DescribedGroup {
    let known = version < NOT_FOUND_SINCE;
    DescribedGroup {
        error_code: if known { ErrorCode::NONE } else { ErrorCode::GROUP_ID_NOT_FOUND },
        error_message: (!known).then(|| match is_consumer {
            true => format!("Group {group} is not a classic group."),
            false => format!("Group {group} not found."),
        }),
        group_id: group.to_owned(),
        group_state: GroupState::Dead.name().to_owned(),
        ..Default::default()
    }
}

/// The line of a live group in a list.
pub(super) fn list_live(group: &ClassicGroup) -> ListedGroup {
    listed(&group.id, group.state(), group.protocol_type())
}

/// The line of a group that nobody has asked for since the start.
pub(super) fn list_stored(id: &str, group: &Group) -> ListedGroup {
    match group {
        Group::Classic(StoredClassic { members, protocol_type, .. }) => {
            let state = if members.is_empty() { GroupState::Empty } else { GroupState::Stable };
            listed(id, state, protocol_type.as_deref())
        }
        Group::Consumer(stored) => ListedGroup {
            group_type: CONSUMER.to_owned(),
            ..listed(id, consumer::state(stored), Some(CONSUMER))
        },
    }
}

fn listed(id: &str, state: GroupState, protocol_type: Option<&str>) -> ListedGroup {
    ListedGroup {
        group_id: id.to_owned(),
        protocol_type: protocol_type.unwrap_or_default().to_owned(),
        group_state: state.name().to_owned(),
        group_type: CLASSIC.to_owned(),
    }
}

/// Whether a list that is filtered like this has the group in it. Unknown names match nothing.
pub(super) fn is_wanted(request: &ListGroupsRequest, group: &ListedGroup) -> bool {
    let among =
        |filter: &[String], is: &str| filter.is_empty() || filter.iter().any(|f| f.eq_ignore_ascii_case(is));
    among(&request.states_filter, &group.group_state) && among(&request.types_filter, &group.group_type)
}
