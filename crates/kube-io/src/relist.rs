//! Turns the events of kube's watcher into changes. A list that is repeated after an interruption reports what was deleted
//! meanwhile, so that no consumer has to compare lists.

use std::collections::HashSet;

use kube::{ResourceExt, runtime::watcher::Event};

/// Namespace and name of an object. The namespace of a cluster-scoped object is empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    pub namespace: String,
    pub name: String,
}

impl ObjectKey {
    pub fn of(object: &impl ResourceExt) -> Self {
        ObjectKey { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Change<K> {
    /// The object was created, changed or listed.
    Applied(Box<K>),
    Deleted(ObjectKey),
    /// A list is complete: every object that exists was applied, and every other one deleted.
    Synced,
}

/// The objects that a watch has delivered, to find out after a list which of them are gone.
#[derive(Debug, Default)]
pub(crate) struct Relist {
    known: HashSet<ObjectKey>,
    listed: HashSet<ObjectKey>,
}

impl Relist {
    /// The changes that an event stands for, in the order in which they are to be delivered.
    pub(crate) fn changes<K: ResourceExt>(&mut self, event: Event<K>) -> Vec<Change<K>> {
        match event {
            // Objects of a list that was cut off were delivered, so they count as known.
            Event::Init => {
                self.known.extend(self.listed.drain());
                Vec::new()
            }
            Event::InitApply(object) => {
                self.listed.insert(ObjectKey::of(&object));
                vec![Change::Applied(Box::new(object))]
            }
            Event::InitDone => {
                let before = std::mem::replace(&mut self.known, std::mem::take(&mut self.listed));
                let deleted = before.into_iter().filter(|key| !self.known.contains(key)).map(Change::Deleted);
                deleted.chain([Change::Synced]).collect()
            }
            Event::Apply(object) => {
                self.known.insert(ObjectKey::of(&object));
                vec![Change::Applied(Box::new(object))]
            }
            Event::Delete(object) => {
                let key = ObjectKey::of(&object);
                self.known.remove(&key);
                vec![Change::Deleted(key)]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;

    use super::*;

    fn node(name: &str) -> Node {
        let mut node = Node::default();
        node.metadata.name = Some(name.to_owned());
        node
    }

    #[test]
    fn a_repeated_list_reports_what_is_gone_and_keeps_the_rest() {
        let mut relist = Relist::default();
        let mut changes = |event: Event<Node>| -> Vec<String> {
            let text = |change: Change<Node>| match change {
                Change::Applied(node) => format!("+{}", node.name_any()),
                Change::Deleted(key) => format!("-{}", key.name),
                Change::Synced => "synced".to_owned(),
            };
            relist.changes(event).into_iter().map(text).collect()
        };
        assert!(changes(Event::Init).is_empty());
        assert_eq!(changes(Event::InitApply(node("a"))), ["+a"]);
        assert_eq!(changes(Event::InitApply(node("b"))), ["+b"]);
        assert_eq!(changes(Event::InitDone), ["synced"]);
        changes(Event::Apply(node("c")));
        assert_eq!(changes(Event::Delete(node("b"))), ["-b"]);
        changes(Event::Init);
        changes(Event::InitApply(node("half")));
        changes(Event::Init);
        changes(Event::InitApply(node("c")));
        let mut last = changes(Event::InitDone);
        last.sort();
        assert_eq!(last, ["-a", "-half", "synced"], "also what only a list that was cut off has delivered");
    }
}
