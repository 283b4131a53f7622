//! When an object may be written again: later after every failure, and later if the same request has to be repeated.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube_io::{BackoffPolicy, KeyedBackoff};

use super::{Request, request::Object};

#[derive(Debug)]
pub(super) struct Retries {
    backoff: KeyedBackoff<Object>,
    last: BTreeMap<Object, Request>,
}

impl Default for Retries {
    fn default() -> Self {
        Retries { backoff: KeyedBackoff::new(BackoffPolicy::LOCAL), last: BTreeMap::new() }
    }
}

impl Retries {
    pub(super) fn may_try(&self, object: &Object, now: Timestamp) -> bool {
        self.backoff.until(object, now).is_none()
    }

    pub(super) fn failed(&mut self, object: Object, now: Timestamp) {
        self.backoff.failed(object, now);
    }

    /// A request that has to be repeated was undone by somebody else. The backoff limits the race with them.
    pub(super) fn succeeded(&mut self, object: Object, request: &Request, now: Timestamp) {
        if self.last.get(&object) == Some(request) {
            self.backoff.failed(object, now);
        } else {
            self.backoff.reset(&object);
            self.last.insert(object, request.clone());
        }
    }

    /// When the next object that has to wait may be tried again.
    pub(super) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        self.backoff.next(now)
    }

    /// Forgets objects that do not exist any more.
    pub(super) fn retain(&mut self, exists: impl Fn(&Object) -> bool) {
        self.backoff.retain(&exists);
        self.last.retain(|object, _| exists(object));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_config::test_objects::at;

    fn node() -> Object {
        Object::Node("a".into())
    }

    fn after(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(milliseconds).unwrap()
    }

    #[test]
    fn failures_of_an_object_make_it_wait_until_a_success() {
        let mut retries = Retries::default();
        retries.failed(node(), at(0));
        retries.failed(node(), at(0));
        assert_eq!(retries.next(at(0)), Some(after(100)));
        assert!(!retries.may_try(&node(), after(99)) && retries.may_try(&node(), after(100)));
        assert!(retries.may_try(&Object::Node("b".into()), at(0)));
        retries.succeeded(node(), &Request::StartReboot { node: "a".into() }, at(9));
        assert!(retries.may_try(&node(), at(9)));
        assert_eq!(retries.next(at(9)), None);
        retries.failed(node(), at(10));
        assert!(retries.may_try(&node(), after(10_050)), "failures are counted anew after a success");
        retries.retain(|object| *object != node());
        assert!(retries.may_try(&node(), at(10)));
    }

    #[test]
    fn a_request_that_is_repeated_waits_longer_each_time() {
        let mut retries = Retries::default();
        let (down, up) = (Request::SetNotReady { node: "a".into() }, Request::SetReady { node: "a".into() });
        retries.succeeded(node(), &down, at(0));
        assert!(retries.may_try(&node(), at(0)));
        retries.succeeded(node(), &down, at(0));
        assert_eq!(retries.next(at(0)), Some(after(50)));
        retries.succeeded(node(), &down, at(1));
        assert_eq!(retries.next(at(1)), Some(after(1100)));
        retries.succeeded(node(), &up, at(2));
        assert!(retries.may_try(&node(), at(2)));
    }
}
