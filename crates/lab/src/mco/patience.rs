//! How long to leave an object alone after a request about it failed, or had to be made again and again.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Action, action::Object};
use crate::watch::delay;

#[derive(Debug, Default)]
pub(super) struct Patience {
    objects: BTreeMap<Object, Entry>,
}

#[derive(Debug, Default)]
struct Entry {
    tries: u32,
    until: Option<Timestamp>,
    last: Option<Action>,
}

impl Patience {
    pub(super) fn may_try(&self, object: &Object, now: Timestamp) -> bool {
        self.objects.get(object).and_then(|entry| entry.until).is_none_or(|until| until <= now)
    }

    pub(super) fn failed(&mut self, object: Object, now: Timestamp) {
        self.objects.entry(object).or_default().wait(now);
    }

    /// An action that has to be done twice in a row is being undone by somebody: do not race with them.
    pub(super) fn succeeded(&mut self, object: Object, action: &Action, now: Timestamp) {
        let entry = self.objects.entry(object).or_default();
        if entry.last.as_ref() == Some(action) {
            entry.wait(now);
        } else {
            *entry = Entry { last: Some(action.clone()), ..Entry::default() };
        }
    }

    /// The next time at which something may be tried that may not be now.
    pub(super) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        self.objects.values().filter_map(|entry| entry.until).filter(|until| *until > now).min()
    }

    pub(super) fn forget(&mut self, is_gone: impl Fn(&Object) -> bool) {
        self.objects.retain(|object, _| !is_gone(object));
    }
}

impl Entry {
    fn wait(&mut self, now: Timestamp) {
        self.until = now.checked_add(delay(self.tries)).ok();
        self.tries = self.tries.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mco::test_objects::at;

    fn node() -> Object {
        Object::Node("a".into())
    }

    fn after(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(milliseconds).unwrap()
    }

    #[test]
    fn failures_of_an_object_make_it_wait_longer_and_longer_and_no_other() {
        let mut patience = Patience::default();
        let mut waits = Vec::new();
        for _ in 0..10 {
            patience.failed(node(), at(0));
            waits.push(patience.next(at(0)).unwrap().as_millisecond());
        }
        assert_eq!(waits, [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
        assert!(!patience.may_try(&node(), after(4999)));
        assert!(patience.may_try(&node(), after(5000)));
        assert!(patience.may_try(&Object::Node("b".into()), at(0)));
        patience.succeeded(node(), &Action::StartReboot { node: "a".into() }, at(9));
        assert!(patience.may_try(&node(), at(9)));
        assert_eq!(patience.next(at(9)), None);
        patience.failed(node(), at(10));
        assert!(patience.may_try(&node(), after(10_050)), "a success starts over");
        patience.forget(|object| *object == node());
        assert!(patience.may_try(&node(), at(10)));
    }

    #[test]
    fn what_has_to_be_done_again_and_again_is_done_less_and_less() {
        let mut patience = Patience::default();
        let (down, up) = (Action::GoDown { node: "a".into() }, Action::ComeUp { node: "a".into() });
        patience.succeeded(node(), &down, at(0));
        assert!(patience.may_try(&node(), at(0)));
        patience.succeeded(node(), &down, at(0));
        assert_eq!(patience.next(at(0)), Some(after(50)));
        patience.succeeded(node(), &down, at(1));
        assert_eq!(patience.next(at(1)), Some(after(1100)));
        patience.succeeded(node(), &up, at(2));
        assert!(patience.may_try(&node(), at(2)));
    }
}
