//! Leader election: what to request from the API server next, given its answers and the candidate's own clock. Times in the record are
//! not compared, because clocks differ. Every write names the version that it replaces, so of two candidates that both believe it is
//! their turn one is refused.

use std::time::Duration;

/// A lease lasts so much longer on a slow way, at most.
const LONGEST: u32 = 16;

/// So many round trips have to fit into the time that a leader has to renew: two requests, each over a new connection, which takes three,
/// and the wait between them.
const ROUND_TRIPS: u32 = 8;

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

impl LeaseTimes {
    /// How many times longer the lease has to last if an answer takes so long.
    fn factor(&self, round_trip: Duration) -> u32 {
        (1..LONGEST).find(|factor| self.renew_deadline * *factor >= round_trip * ROUND_TRIPS).unwrap_or(LONGEST)
    }
}

/// What is stored in the lease.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LeaseRecord {
    /// Empty after a release.
    pub holder: String,
    /// How often the holder has changed.
    pub transitions: i64,
    /// For how long the holder has to be waited for.
    pub duration: Duration,
    pub version: String,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Input {
    Absent,
    Found(LeaseRecord),
    /// The record with its new version.
    Written(LeaseRecord),
    /// The record has another version than the one to replace.
    Conflict,
    /// Refused, or no answer: it is not known whether the record was written.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Request {
    Read,
    Create(LeaseRecord),
    /// Over the version that the record carries.
    Replace(LeaseRecord),
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
    /// The record as last read or written, and since when it is unchanged.
    seen: Option<(LeaseRecord, Duration)>,
    /// Whether the record is what this candidate has written, so that it need not be read before it is renewed.
    is_own: bool,
    /// Until when the last successful write lets it lead, and the number of transitions then.
    led: Option<(Duration, i64)>,
    /// When the pending request was sent.
    sent: Duration,
    /// How many times longer than usual the lease that is written lasts.
    factor: u32,
}

impl Candidate {
    pub fn new(id: String, times: LeaseTimes) -> Self {
        Candidate { id, times, seen: None, is_own: false, led: None, sent: Duration::ZERO, factor: 1 }
    }

    /// Until when the candidate leads, and its epoch: the number of transitions.
    pub fn leads_until(&self) -> Option<(Duration, i64)> {
        self.led
    }

    pub fn leads(&self, now: Duration) -> bool {
        self.leads_until().is_some_and(|(until, _)| now < until)
    }

    pub fn start(&mut self, now: Duration) -> Step {
        self.sent = now;
        match &self.seen {
            Some((record, _)) if self.is_own => {
                let record = record.clone();
                Step::Send(Request::Replace(self.held(now, record)))
            }
            _ => Step::Send(Request::Read),
        }
    }

    pub fn next(&mut self, now: Duration, input: Input) -> Step {
        let sent = std::mem::replace(&mut self.sent, now);
        let was_own = std::mem::replace(&mut self.is_own, false);
        let written_for = self.times.renew_deadline * self.factor;
        if input != Input::Unknown {
            self.factor = self.times.factor(now.saturating_sub(sent));
        }
        match input {
            Input::Unknown => self.retry(),
            // The answer to an earlier renewal was lost, or somebody else holds the lease by now.
            Input::Conflict if was_own => Step::Send(Request::Read),
            Input::Conflict => self.retry(),
            Input::Absent => {
                let record = LeaseRecord {
                    holder: String::new(),
                    transitions: 0,
                    duration: Duration::ZERO,
                    version: String::new(),
                };
                Step::Send(Request::Create(self.held(now, record)))
            }
            Input::Written(record) => {
                self.led = Some((sent + written_for, record.transitions));
                self.seen = Some((record, now));
                self.is_own = true;
                self.retry()
            }
            Input::Found(record) => self.found(now, record),
        }
    }

    fn retry(&self) -> Step {
        Step::Done(Outcome { retry_after: self.times.retry_period })
    }

    /// The record as this candidate writes it now. If it lets others wait for a shorter time than the one before, that counts from now
    /// on: the answer may come late.
    fn held(&mut self, now: Duration, record: LeaseRecord) -> LeaseRecord {
        let until = now + self.times.renew_deadline * self.factor;
        self.led = self.led.map(|(led_until, epoch)| (led_until.min(until), epoch));
        LeaseRecord { holder: self.id.clone(), duration: self.times.lease_duration * self.factor, ..record }
    }

    fn found(&mut self, now: Duration, record: LeaseRecord) -> Step {
        let since = match &self.seen {
            Some((known, since)) if *known == record => *since,
            _ => now,
        };
        self.seen = Some((record.clone(), since));
        if record.holder == self.id {
            return Step::Send(Request::Replace(self.held(now, record)));
        }
        // A record that asks for days is somebody's mistake.
        let wait = record.duration.clamp(self.times.lease_duration, self.times.lease_duration * LONGEST);
        if record.holder.is_empty() || now >= since + wait {
            let record = LeaseRecord { transitions: record.transitions + 1, ..record };
            return Step::Send(Request::Replace(self.held(now, record)));
        }
        self.retry()
    }

    /// Releases the lease, if this candidate holds it, so that the next leader need not wait.
    pub fn start_release(&self) -> Step {
        match &self.seen {
            Some((record, _)) if record.holder == self.id => {
                Step::Send(Request::Replace(LeaseRecord { holder: String::new(), ..record.clone() }))
            }
            _ => self.retry(),
        }
    }

    /// A renewal whose answer nobody waited for may have been stored, so a conflict leads to another look at the lease.
    pub fn next_release(&mut self, now: Duration, input: Input) -> Step {
        match input {
            Input::Conflict => Step::Send(Request::Read),
            Input::Found(record) => {
                self.seen = Some((record, now));
                self.start_release()
            }
            Input::Absent | Input::Written(_) | Input::Unknown => self.retry(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: Step = Step::Done(Outcome { retry_after: s(2) });

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn record(holder: &str, transitions: i64, version: &str) -> LeaseRecord {
        LeaseRecord { holder: holder.into(), transitions, duration: s(15), version: version.into() }
    }

    fn replace(record: LeaseRecord) -> Step {
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
        assert_eq!(us.start(s(2)), replace(record("us", 5, "1")), "in one request");
        us.next(s(3), Input::Written(record("us", 5, "2")));
        assert_eq!(us.leads_until(), Some((s(12), 5)));
        assert!(us.leads(s(11)) && !us.leads(s(12)));
        assert_eq!(us.start_release(), replace(record("", 5, "2")));
        assert_eq!(us.next_release(s(4), Input::Written(record("", 5, "3"))), RETRY);
    }

    #[test]
    fn a_leader_reads_the_lease_only_after_a_renewal_that_did_not_succeed() {
        let mut us = candidate();
        us.next(s(0), Input::Written(record("us", 0, "1")));
        assert_eq!(us.start(s(2)), replace(record("us", 0, "1")));
        assert_eq!(us.next(s(2), Input::Conflict), Step::Send(Request::Read), "at once");
        assert_eq!(
            us.next(s(2), Input::Found(record("us", 0, "2"))),
            replace(record("us", 0, "2")),
            "an answer was lost"
        );
        assert_eq!(us.next(s(2), Input::Conflict), RETRY, "no more than one read in an attempt");
        assert_eq!(us.start(s(4)), Step::Send(Request::Read));
        us.next(s(4), Input::Found(record("us", 0, "3")));
        us.next(s(4), Input::Written(record("us", 0, "4")));
        us.start(s(6));
        assert_eq!(us.next(s(7), Input::Unknown), RETRY);
        assert_eq!(us.start(s(9)), Step::Send(Request::Read), "the renewal may have succeeded");
    }

    /// Found with delays of 3 s and more on the way: nobody ever led.
    #[test]
    fn a_lease_lasts_longer_where_answers_take_long_and_others_wait_for_its_holder() {
        for (round_trip, lasts, leads) in
            [(0, 15, 10), (1, 15, 10), (2, 30, 20), (3, 45, 30), (6, 75, 50), (20, 240, 160), (60, 240, 160)]
        {
            let slow = |holder: &str, transitions, version: &str| LeaseRecord {
                duration: s(lasts),
                ..record(holder, transitions, version)
            };
            let mut us = candidate();
            us.start(s(0));
            let created = us.next(s(round_trip), Input::Absent);
            assert_eq!(created, Step::Send(Request::Create(slow("us", 0, ""))), "{round_trip} s");
            us.next(s(2 * round_trip), Input::Written(slow("us", 0, "1")));
            assert_eq!(us.leads_until(), Some((s(round_trip + leads), 0)), "{round_trip} s");
            let mut them = Candidate::new("them".into(), LeaseTimes::default());
            let ours = || Input::Found(slow("us", 0, "1"));
            them.start(s(0));
            assert_eq!(them.next(s(0), ours()), RETRY);
            them.start(s(lasts - 1));
            assert_eq!(them.next(s(lasts - 1), ours()), RETRY, "{round_trip} s");
            them.start(s(lasts));
            assert_eq!(them.next(s(lasts), ours()), replace(record("them", 1, "1")), "{round_trip} s");
        }
        let mut us = candidate();
        us.start(s(0));
        us.next(s(20), Input::Absent);
        us.next(s(20), Input::Written(record("us", 0, "1")));
        assert_eq!(us.leads_until(), Some((s(180), 0)));
        us.start(s(22));
        assert_eq!(us.leads_until(), Some((s(32), 0)), "others may see the shorter lease before its answer comes");

        let mut us = candidate();
        let days = || Input::Found(LeaseRecord { duration: s(1_000_000), ..record("them", 3, "7") });
        us.next(s(0), days());
        us.start(s(240));
        assert_eq!(us.next(s(240), days()), replace(record("us", 4, "7")), "no record is waited for for days");
    }

    #[test]
    fn a_lost_lease_is_noticed_when_it_is_read() {
        let mut us = candidate();
        us.next(s(0), Input::Written(record("us", 0, "1")));
        assert_eq!(us.next(s(3), Input::Found(record("them", 1, "2"))), RETRY);
        assert_eq!(us.start_release(), RETRY, "theirs is not ours to give up");
    }

    #[test]
    fn a_leader_that_ends_during_a_renewal_releases_what_the_renewal_has_stored() {
        let mut us = candidate();
        us.next(s(0), Input::Written(record("us", 0, "1")));
        assert_eq!(
            us.start(s(2)),
            replace(record("us", 0, "1")),
            "stored as version 2, and the process is told to end"
        );
        assert_eq!(us.start_release(), replace(record("", 0, "1")));
        assert_eq!(us.next_release(s(2), Input::Conflict), Step::Send(Request::Read));
        assert_eq!(us.next_release(s(2), Input::Found(record("us", 0, "2"))), replace(record("", 0, "2")));

        assert_eq!(us.next_release(s(2), Input::Conflict), Step::Send(Request::Read));
        assert_eq!(us.next_release(s(2), Input::Found(record("them", 1, "3"))), RETRY, "another one leads by now");
        assert_eq!(us.next_release(s(2), Input::Unknown), RETRY, "the lease runs out by itself");
    }
}
