//! Leader election: what to request from the API server next, given its answers and the candidate's own clock.
//!
//! Every write names the version that it replaces, so of two candidates that both believe it is their turn one is refused.
//! A leader is considered gone when its record has not changed for the lease duration by the candidate's own clock; times in the
//! record are not compared, because clocks differ. A leader that cannot renew stops before another one may start.

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseTimes {
    /// After how long an unchanged record counts as abandoned.
    pub lease_duration: Duration,
    /// After how long without a renewal a leader stops.
    pub renew_deadline: Duration,
    /// How long to wait between two attempts.
    pub retry_period: Duration,
}

impl Default for LeaseTimes {
    fn default() -> Self {
        LeaseTimes {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// What is stored in the lease.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    /// Empty after a release.
    pub holder: String,
    /// How often the holder has changed.
    pub transitions: i64,
    pub version: String,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Input {
    Absent,
    Found(Record),
    /// The record with its new version.
    Written(Record),
    /// Refused, or no answer: it is not known whether the record was written.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Request {
    Read,
    Create(Record),
    /// Over the version that the record carries.
    Replace(Record),
}

/// The attempt is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Outcome {
    pub retry_after: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Step {
    Send(Request),
    Done(Outcome),
}

/// One replica that wants to lead. Times are those of its own clock, since an arbitrary start.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Candidate {
    id: String,
    times: LeaseTimes,
    /// The record as last read, and since when it is unchanged.
    seen: Option<(Record, Duration)>,
    /// When the last successful write was sent, and the number of transitions then.
    led: Option<(Duration, i64)>,
    /// When the pending request was sent.
    sent: Duration,
}

impl Candidate {
    pub fn new(id: String, times: LeaseTimes) -> Self {
        Candidate { id, times, seen: None, led: None, sent: Duration::ZERO }
    }

    /// Until when the candidate leads, and its epoch: the number of transitions.
    pub fn leads_until(&self) -> Option<(Duration, i64)> {
        self.led.map(|(sent, epoch)| (sent + self.times.renew_deadline, epoch))
    }

    pub fn leads(&self, now: Duration) -> bool {
        self.leads_until().is_some_and(|(until, _)| now < until)
    }

    pub fn start(&mut self, now: Duration) -> Step {
        self.sent = now;
        Step::Send(Request::Read)
    }

    pub fn next(&mut self, now: Duration, input: Input) -> Step {
        let sent = std::mem::replace(&mut self.sent, now);
        match input {
            Input::Unknown => self.retry(),
            Input::Absent => {
                let record = Record { holder: self.id.clone(), transitions: 0, version: String::new() };
                Step::Send(Request::Create(record))
            }
            Input::Written(record) => {
                self.led = Some((sent, record.transitions));
                self.seen = Some((record, now));
                self.retry()
            }
            Input::Found(record) => self.found(now, record),
        }
    }

    fn retry(&self) -> Step {
        Step::Done(Outcome { retry_after: self.times.retry_period })
    }

    fn found(&mut self, now: Duration, record: Record) -> Step {
        let since = match &self.seen {
            Some((known, since)) if *known == record => *since,
            _ => now,
        };
        self.seen = Some((record.clone(), since));
        if record.holder == self.id {
            return Step::Send(Request::Replace(record));
        }
        if record.holder.is_empty() || now >= since + self.times.lease_duration {
            let record = Record { holder: self.id.clone(), transitions: record.transitions + 1, ..record };
            return Step::Send(Request::Replace(record));
        }
        self.retry()
    }

    /// The record that releases the lease, if this candidate holds it. Then the next leader need not wait.
    pub fn release(&self) -> Option<Record> {
        let (record, _) = self.seen.as_ref().filter(|(record, _)| record.holder == self.id)?;
        Some(Record { holder: String::new(), ..record.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: Step = Step::Done(Outcome { retry_after: s(2) });

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn record(holder: &str, transitions: i64, version: &str) -> Record {
        Record { holder: holder.into(), transitions, version: version.into() }
    }

    fn replace(record: Record) -> Step {
        Step::Send(Request::Replace(record))
    }

    fn candidate() -> Candidate {
        Candidate::new("us".into(), LeaseTimes::default())
    }

    #[test]
    fn the_first_candidate_creates_the_lease_and_leads_from_when_it_sent_the_request() {
        let mut us = candidate();
        assert_eq!(us.start(s(100)), Step::Send(Request::Read));
        assert_eq!(us.next(s(101), Input::Absent), Step::Send(Request::Create(record("us", 0, ""))));
        assert!(!us.leads(s(101)));
        assert_eq!(us.next(s(104), Input::Written(record("us", 0, "1"))), RETRY);
        assert_eq!(us.leads_until(), Some((s(111), 0)), "from the request, not from the answer");
    }

    #[test]
    fn a_leader_that_renews_is_left_alone_whatever_time_it_claims() {
        let mut us = candidate();
        for round in 0..20 {
            us.start(s(2 * round));
            let theirs = record("them", 3, &round.to_string());
            assert_eq!(us.next(s(2 * round), Input::Found(theirs)), RETRY);
        }
    }

    #[test]
    fn a_silent_leader_is_replaced_after_the_lease_duration_by_our_own_clock() {
        let mut us = candidate();
        let theirs = || Input::Found(record("them", 3, "7"));
        for (now, takes) in [(50, false), (52, false), (64, false), (65, true)] {
            let taken = replace(record("us", 4, "7"));
            let expected = if takes { taken } else { RETRY };
            assert_eq!(us.next(s(now), theirs()), expected, "at {now}");
        }
        us.next(s(66), Input::Unknown);
        assert!(!us.leads(s(66)), "a write without an answer makes nobody a leader");
    }

    #[test]
    fn a_released_lease_is_taken_at_once() {
        let mut us = candidate();
        assert_eq!(us.next(s(1), Input::Found(record("", 3, "7"))), replace(record("us", 4, "7")));
    }

    #[test]
    fn renewing_keeps_the_epoch_and_failing_to_ends_it_before_others_may_start() {
        let mut us = candidate();
        us.start(s(0));
        us.next(s(0), Input::Absent);
        us.next(s(0), Input::Written(record("us", 5, "1")));
        us.start(s(2));
        assert_eq!(us.next(s(2), Input::Found(record("us", 5, "1"))), replace(record("us", 5, "1")));
        us.next(s(3), Input::Written(record("us", 5, "2")));
        assert_eq!(us.leads_until(), Some((s(12), 5)));
        assert!(us.leads(s(11)) && !us.leads(s(12)));
        assert_eq!(us.release(), Some(record("", 5, "2")));
    }

    #[test]
    fn a_lost_lease_is_noticed_when_it_is_read() {
        let mut us = candidate();
        us.next(s(0), Input::Written(record("us", 0, "1")));
        assert_eq!(us.next(s(3), Input::Found(record("them", 1, "2"))), RETRY);
        assert_eq!(us.release(), None, "theirs is not ours to give up");
    }
}
