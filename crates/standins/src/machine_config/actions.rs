//! What to do next: requests to send, nodes to drain, and when to decide again.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::Request;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Actions {
    /// In the order in which they are sent.
    pub requests: Vec<Request>,
    /// The drains that run. All others are stopped.
    pub drains: BTreeSet<Drain>,
    /// Decide again at this time, even if nothing changes before.
    pub wake_at: Option<Timestamp>,
}

/// Pods of a node are evicted until none is left, for the update to a config.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Drain {
    pub node: String,
    pub config: String,
}

impl Actions {
    pub(super) fn append(&mut self, other: Actions) {
        self.requests.extend(other.requests);
        self.drains.extend(other.drains);
        self.wake_at = self.wake_at.into_iter().chain(other.wake_at).min();
    }
}

impl From<Request> for Actions {
    fn from(request: Request) -> Actions {
        Actions { requests: vec![request], ..Actions::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_config::test_objects::at;

    #[test]
    fn appended_actions_follow_and_the_earliest_time_counts() {
        let ready = |node: &str| Request::SetReady { node: node.into() };
        let mut actions = Actions::from(ready("a"));
        let drain = Drain { node: "b".into(), config: "x".into() };
        actions.append(Actions { drains: [drain.clone()].into(), wake_at: Some(at(2)), ..ready("b").into() });
        actions.append(Actions { wake_at: Some(at(1)), ..Actions::default() });
        let expected = Actions { requests: vec![ready("a"), ready("b")], drains: [drain].into(), wake_at: Some(at(1)) };
        assert_eq!(actions, expected);
    }
}
