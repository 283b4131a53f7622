//! What a watch says, as changes: a list that is repeated after an interruption tells what is gone and no more.

use std::collections::HashSet;

use kube::{ResourceExt, runtime::watcher::Event};

#[derive(Debug)]
pub enum Change<K> {
    Is(Box<K>),
    /// Namespace and name.
    Gone((String, String)),
}

/// The names of a kind, to find out after a list what is gone.
#[derive(Debug, Default)]
pub struct Listing {
    known: HashSet<(String, String)>,
    incoming: HashSet<(String, String)>,
}

impl Listing {
    /// Returns whether a list is complete with this.
    pub fn hear<K: ResourceExt>(&mut self, event: Event<K>, mut tell: impl FnMut(Change<K>)) -> bool {
        let name = |object: &K| (object.namespace().unwrap_or_default(), object.name_any());
        match event {
            Event::Init => self.incoming.clear(),
            Event::InitApply(object) => {
                self.incoming.insert(name(&object));
                tell(Change::Is(Box::new(object)));
            }
            Event::InitDone => {
                let known = std::mem::replace(&mut self.known, std::mem::take(&mut self.incoming));
                known.into_iter().filter(|name| !self.known.contains(name)).for_each(|name| tell(Change::Gone(name)));
                return true;
            }
            Event::Apply(object) => {
                self.known.insert(name(&object));
                tell(Change::Is(Box::new(object)));
            }
            Event::Delete(object) => {
                self.known.remove(&name(&object));
                tell(Change::Gone(name(&object)));
            }
        }
        false
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
    fn a_repeated_list_tells_what_is_gone_and_keeps_the_rest() {
        let (mut listing, mut said) = (Listing::default(), Vec::new());
        let mut hear = |event: Event<Node>| {
            let done = listing.hear(event, |change| {
                said.push(match change {
                    Change::Is(node) => format!("+{}", node.name_any()),
                    Change::Gone((_, name)) => format!("-{name}"),
                });
            });
            (done, std::mem::take(&mut said))
        };
        assert_eq!(hear(Event::Init), (false, vec![]));
        assert_eq!(hear(Event::InitApply(node("a"))), (false, vec!["+a".to_owned()]));
        assert_eq!(hear(Event::InitApply(node("b"))), (false, vec!["+b".to_owned()]));
        assert_eq!(hear(Event::InitDone), (true, vec![]));
        hear(Event::Apply(node("c")));
        hear(Event::Delete(node("b")));
        hear(Event::Init);
        hear(Event::InitApply(node("half")));
        hear(Event::Init);
        hear(Event::InitApply(node("c")));
        assert_eq!(hear(Event::InitDone), (true, vec!["-a".to_owned()]), "a list that was cut off does not count");
    }
}
