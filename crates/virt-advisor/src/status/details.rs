//! What depends on how far a rollout is: the virtual machines on nodes that are drained, their migrations, and Events.

use advisor::{
    blast_radius::{Platform, Reading},
    rollout_view::{ConfigStatus, Guest, Move, Notice, guests},
};
use kube_io::Class;

use crate::{
    impact::observe::{INSTANCES, KUBEVIRTS, MIGRATIONS},
    reader::{Reader, reading, why},
};

/// Events about objects that are in no namespace are in this one.
const EVENTS: &str = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.kind=VirtPlatformConfig";

/// So many virtual machines are named in one request, which is part of its address.
const NAMED: usize = 50;
/// The value of a label has at most so many characters.
const LONGEST_LABEL: usize = 63;

/// So many of the last Events are shown.
const SHOWN_EVENTS: usize = 5;

#[derive(Debug, Clone)]
pub(super) struct Details {
    pub(super) guests: Reading<Vec<Guest>>,
    pub(super) moves: Reading<Vec<Move>>,
    pub(super) platform: Reading<Platform>,
    pub(super) events: Reading<Vec<Notice>>,
}

impl Details {
    /// Only the virtual machines of nodes that are drained are read, and none if there is no such node.
    pub(super) async fn read(reader: &Reader, statuses: &[ConfigStatus]) -> Self {
        let nodes: Vec<String> = statuses.iter().flat_map(ConfigStatus::draining).collect();
        let mut details = Details {
            guests: Reading::Read(Vec::new()),
            moves: Reading::NotServed,
            platform: Reading::NotServed,
            events: reading(reader.pages(EVENTS, Notice::of).await.0),
        };
        if nodes.is_empty() {
            return details;
        }
        for node in &nodes {
            // KubeVirt sets this label for exactly this question.
            let path = format!("{INSTANCES}?labelSelector=kubevirt.io%2FnodeName%3D{node}");
            match (&mut details.guests, reading(reader.pages(&path, Guest::of).await.0)) {
                (Reading::Read(known), Reading::Read(found)) => known.extend(found),
                (known, failed) => {
                    *known = failed;
                    break;
                }
            }
        }
        details.moves = moves(reader, details.guests.items()).await;
        details.platform = match reading(reader.pages(KUBEVIRTS, |object| Some(Platform::of(object))).await.0) {
            Reading::Read(found) => found.into_iter().next().map_or(Reading::NotServed, Reading::Read),
            Reading::NotServed => Reading::NotServed,
            Reading::Unreadable(why) => Reading::Unreadable(why),
        };
        details
    }

    /// What was not answered because the API server is away or busy is as it was known before.
    pub(super) fn or_known(self, known: Option<Details>) -> Self {
        let Some(known) = known else { return self };
        Details {
            guests: or_known(self.guests, known.guests),
            moves: or_known(self.moves, known.moves),
            platform: or_known(self.platform, known.platform),
            events: or_known(self.events, known.events),
        }
    }

    pub(super) fn add_to(&self, statuses: &mut [ConfigStatus]) {
        for status in statuses {
            let found = guests(&status.draining(), self.guests.items(), self.moves.items(), &self.platform);
            status.guests = found;
            let own = self.events.items().iter().filter(|notice| notice.profile == status.profile);
            status.events = own.cloned().collect();
            status.events.sort_by_key(|notice| notice.time);
            status.events.drain(..status.events.len().saturating_sub(SHOWN_EVENTS));
        }
    }
}

fn or_known<T>(read: Reading<T>, known: Reading<T>) -> Reading<T> {
    let passes = |reason: &str| [Class::Unknown, Class::Busy].iter().any(|class| why(class) == reason);
    match (&read, &known) {
        (Reading::Unreadable(reason), Reading::Read(_)) if passes(reason) => known,
        _ => read,
    }
}

/// The migrations of these virtual machines. A cluster keeps many more, most of which have ended.
async fn moves(reader: &Reader, guests: &[Guest]) -> Reading<Vec<Move>> {
    let mut moves = Vec::new();
    for path in paths(guests) {
        match reading(reader.pages(&path, Move::of).await.0) {
            Reading::Read(found) => moves.extend(found),
            failed => return failed,
        }
    }
    Reading::Read(moves)
}

/// KubeVirt gives a migration the name of its virtual machine as a label.
fn paths(guests: &[Guest]) -> Vec<String> {
    let path = |names: &[&str]| {
        format!("{MIGRATIONS}?labelSelector=kubevirt.io%2Fvmi-name%20in%20%28{}%29", names.join("%2C"))
    };
    // A longer name is no label, and a selector with one would be refused.
    let names: Vec<&str> = guests.iter().map(Guest::name).filter(|name| name.len() <= LONGEST_LABEL).collect();
    names.chunks(NAMED).map(path).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn guests(count: usize) -> Vec<Guest> {
        let guest = |number: usize| {
            let metadata = json!({"namespace": "n", "name": format!("g{number}")});
            Guest::of(&json!({"metadata": metadata, "status": {"phase": "Running", "nodeName": "a"}})).unwrap()
        };
        (0..count).map(guest).collect()
    }

    #[test]
    fn only_migrations_of_virtual_machines_on_nodes_that_drain_are_asked_for() {
        assert_eq!(paths(&[]), [""; 0]);
        let few = format!("{MIGRATIONS}?labelSelector=kubevirt.io%2Fvmi-name%20in%20%28g0%2Cg1%29");
        assert_eq!(paths(&guests(2)), [few]);
        let many = paths(&guests(120));
        assert_eq!(many.iter().map(|path| path.matches("%2C").count() + 1).collect::<Vec<_>>(), [50, 50, 20]);
        let metadata = json!({"namespace": "n", "name": "x".repeat(LONGEST_LABEL + 1)});
        let long = Guest::of(&json!({"metadata": metadata, "status": {"phase": "Running", "nodeName": "a"}})).unwrap();
        assert_eq!(paths(&[long]), [""; 0], "the API server would refuse it");
    }

    #[test]
    fn details_are_kept_while_the_api_server_is_away() {
        let details = |guests: Reading<Vec<Guest>>| Details {
            guests,
            moves: Reading::NotServed,
            platform: Reading::NotServed,
            events: Reading::NotServed,
        };
        let failed = |why: &str| details(Reading::Unreadable(why.into()));
        let known = || Some(details(Reading::Read(guests(1))));
        for (why, kept) in [("no answer", 1), ("the server is busy", 1), ("forbidden (403)", 0)] {
            assert_eq!(failed(why).or_known(known()).guests.items().len(), kept, "{why}");
        }
        assert!(failed("no answer").or_known(None).guests.is_unreadable(), "nothing was known");
        assert_eq!(details(Reading::Read(guests(3))).or_known(known()).guests.items().len(), 3, "an answer");
    }
}
