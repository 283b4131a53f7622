//! Whether the API server answers, as the requests of a command show it that goes on for hours.

use jiff::Timestamp;
use kube_io::{Class, ObservedRequest, Observer};
use tokio::sync::watch;

/// Since when there is no answer. None while there are answers.
#[derive(Debug, Default)]
pub(crate) struct Link {
    away_since: watch::Sender<Option<Timestamp>>,
}

impl Link {
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<Timestamp>> {
        self.away_since.subscribe()
    }

    fn told(&self, is_answer: bool, now: Timestamp) {
        self.away_since.send_if_modified(|since| match (is_answer, since.is_some()) {
            (true, true) => {
                *since = None;
                true
            }
            (false, false) => {
                *since = Some(now);
                true
            }
            _ => false,
        });
    }
}

impl Observer for Link {
    fn answered(&self, request: &ObservedRequest<'_>) {
        self.told(request.code.is_some(), Timestamp::now());
    }

    fn watch_restarted(&self, _: &str, _: &Class, _: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_request_without_an_answer_counts_until_there_is_one_again() {
        let link = Link::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut since = link.subscribe();
        for (is_answer, second, expected) in
            [(true, 1, None), (false, 2, Some(2)), (false, 3, Some(2)), (true, 4, None), (false, 5, Some(5))]
        {
            link.told(is_answer, at(second));
            assert_eq!(*since.borrow_and_update(), expected.map(at), "{second}");
        }
        assert!(!since.has_changed().unwrap());
    }
}
