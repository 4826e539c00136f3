//! Answers that are put together from the answers of several coordinators.

use std::collections::BTreeMap;
use tontine_group::coordinator::Ticket;
use tontine_wire::api::Response;

#[derive(Debug)]
struct Gathered {
    ticket: Ticket,
    missing: usize,
    merged: Response,
}

/// Requests that were split among coordinators.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    whole: BTreeMap<Ticket, Gathered>,
    parts: BTreeMap<Ticket, Ticket>,
}

impl Gathering {
    /// `ticket` is answered when each of `parts` is; `merged` is what is known already.
    pub(crate) fn begin(&mut self, ticket: Ticket, parts: &[Ticket], merged: Response) {
        self.whole.insert(ticket, Gathered { ticket, missing: parts.len(), merged });
        self.parts.extend(parts.iter().map(|part| (*part, ticket)));
    }

    /// Takes an answer; what can be sent now, and for which request.
    pub(crate) fn part(&mut self, part: Ticket, response: Response) -> Option<(Ticket, Response)> {
        let Some(ticket) = self.parts.remove(&part) else { return Some((part, response)) };
        let gathered = self.whole.get_mut(&ticket)?;
        gathered.missing -= 1;
        merge(&mut gathered.merged, response);
        if gathered.missing > 0 {
            return None;
        }
        self.whole.remove(&ticket).map(|gathered| (gathered.ticket, gathered.merged))
    }
}

/// Adds what `more` says to `merged`. Only APIs that name several groups are split.
pub(crate) fn merge(merged: &mut Response, more: Response) {
    match (merged, more) {
        (Response::ListGroups(merged), Response::ListGroups(more)) => {
            if merged.error_code.is_ok() {
                merged.error_code = more.error_code;
            }
            merged.groups.extend(more.groups);
        }
        (Response::DescribeGroups(merged), Response::DescribeGroups(more)) => {
            merged.groups.extend(more.groups)
        }
        (Response::ConsumerGroupDescribe(merged), Response::ConsumerGroupDescribe(more)) => {
            merged.groups.extend(more.groups)
        }
        (Response::DeleteGroups(merged), Response::DeleteGroups(more)) => merged.results.extend(more.results),
        (Response::OffsetFetch(merged), Response::OffsetFetch(more)) => merged.groups.extend(more.groups),
        (merged, more) => *merged = more,
    }
}
