//! Who leads, as values: what to ask of the API server next, given what it answered and what our own clock says.
//!
//! Every write names the version that it replaces, so of two candidates that both believe it is their turn one is refused.
//! Whether a leader is gone is judged by how long its record has not changed before our own eyes, never by the times in it:
//! clocks of machines differ. A leader that could not renew stops well before anybody else may start.

use std::time::Duration;

/// How long a record counts that is not renewed; after how long without success a leader stops; how often is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Times {
    pub duration: Duration,
    pub renew: Duration,
    pub retry: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Times { duration: Duration::from_secs(15), renew: Duration::from_secs(10), retry: Duration::from_secs(2) }
    }
}

/// What is stored, with the version that tells it from all others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    /// Empty when it was released.
    pub holder: String,
    /// How often it went from one holder to another.
    pub transitions: i64,
    pub version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Move {
    Read,
    /// There is none yet.
    Create(Record),
    /// Over the version that it carries.
    Replace(Record),
    Wait(Duration),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Heard {
    Absent,
    Found(Record),
    /// It was written; this is it with its new version.
    Written(Record),
    /// Refused, or no answer: whether it was written is not known.
    Nothing,
}

/// One that would lead. Times are those of its own clock, since whenever.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Candidate {
    id: String,
    times: Times,
    /// The record as last seen, and since when it has been so.
    seen: Option<(Record, Duration)>,
    /// When the write was sent by which we lead, and how often the lease had changed hands then.
    led: Option<(Duration, i64)>,
    /// When the request that is under way was sent.
    sent: Duration,
}

impl Candidate {
    pub fn new(id: String, times: Times) -> Self {
        Candidate { id, times, seen: None, led: None, sent: Duration::ZERO }
    }

    /// Until when we lead, and as which leader in turn.
    pub fn leads_until(&self) -> Option<(Duration, i64)> {
        self.led.map(|(sent, epoch)| (sent + self.times.renew, epoch))
    }

    pub fn leads(&self, now: Duration) -> bool {
        self.leads_until().is_some_and(|(until, _)| now < until)
    }

    pub fn begin(&mut self, now: Duration) -> Move {
        self.sent = now;
        Move::Read
    }

    pub fn next(&mut self, now: Duration, heard: Heard) -> Move {
        let sent = std::mem::replace(&mut self.sent, now);
        match heard {
            Heard::Nothing => Move::Wait(self.times.retry),
            Heard::Absent => Move::Create(Record { holder: self.id.clone(), transitions: 0, version: String::new() }),
            Heard::Written(record) => {
                self.led = Some((sent, record.transitions));
                self.seen = Some((record, now));
                Move::Wait(self.times.retry)
            }
            Heard::Found(record) => self.found(now, record),
        }
    }

    fn found(&mut self, now: Duration, record: Record) -> Move {
        let since = match &self.seen {
            Some((known, since)) if *known == record => *since,
            _ => now,
        };
        self.seen = Some((record.clone(), since));
        if record.holder == self.id {
            return Move::Replace(record);
        }
        if record.holder.is_empty() || now >= since + self.times.duration {
            return Move::Replace(Record { holder: self.id.clone(), transitions: record.transitions + 1, ..record });
        }
        Move::Wait(self.times.retry)
    }

    /// Gives it up, if it is ours: the next one need not wait.
    pub fn release(&self) -> Option<Record> {
        let (record, _) = self.seen.as_ref().filter(|(record, _)| record.holder == self.id)?;
        Some(Record { holder: String::new(), ..record.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn record(holder: &str, transitions: i64, version: &str) -> Record {
        Record { holder: holder.into(), transitions, version: version.into() }
    }

    fn candidate() -> Candidate {
        Candidate::new("us".into(), Times::default())
    }

    #[test]
    fn the_first_one_creates_it_and_leads_from_when_it_asked() {
        let mut us = candidate();
        assert_eq!(us.begin(s(100)), Move::Read);
        assert_eq!(us.next(s(101), Heard::Absent), Move::Create(record("us", 0, "")));
        assert!(!us.leads(s(101)));
        assert_eq!(us.next(s(104), Heard::Written(record("us", 0, "1"))), Move::Wait(s(2)));
        assert_eq!(us.leads_until(), Some((s(111), 0)), "from the moment of asking, not of hearing");
    }

    #[test]
    fn a_leader_that_renews_is_left_alone_whatever_time_it_claims() {
        let mut us = candidate();
        for round in 0..20 {
            us.begin(s(2 * round));
            let theirs = record("them", 3, &round.to_string());
            assert_eq!(us.next(s(2 * round), Heard::Found(theirs)), Move::Wait(s(2)));
        }
    }

    #[test]
    fn a_silent_leader_is_followed_after_the_full_duration_of_our_own_clock() {
        let mut us = candidate();
        let theirs = || Heard::Found(record("them", 3, "7"));
        for (now, takes) in [(50, false), (52, false), (64, false), (65, true)] {
            let taken = Move::Replace(record("us", 4, "7"));
            let expected = if takes { taken } else { Move::Wait(s(2)) };
            assert_eq!(us.next(s(now), theirs()), expected, "at {now}");
        }
        us.next(s(66), Heard::Nothing);
        assert!(!us.leads(s(66)), "a write without an answer makes nobody a leader");
    }

    #[test]
    fn a_released_lease_is_taken_at_once() {
        let mut us = candidate();
        assert_eq!(us.next(s(1), Heard::Found(record("", 3, "7"))), Move::Replace(record("us", 4, "7")));
    }

    #[test]
    fn renewing_keeps_the_epoch_and_failing_to_ends_it_before_others_may_start() {
        let mut us = candidate();
        us.begin(s(0));
        us.next(s(0), Heard::Absent);
        us.next(s(0), Heard::Written(record("us", 5, "1")));
        us.begin(s(2));
        assert_eq!(us.next(s(2), Heard::Found(record("us", 5, "1"))), Move::Replace(record("us", 5, "1")));
        us.next(s(3), Heard::Written(record("us", 5, "2")));
        assert_eq!(us.leads_until(), Some((s(12), 5)));
        assert!(us.leads(s(11)) && !us.leads(s(12)));
        assert_eq!(us.release(), Some(record("", 5, "2")));
    }

    #[test]
    fn what_was_lost_is_seen_when_it_is_read() {
        let mut us = candidate();
        us.next(s(0), Heard::Written(record("us", 0, "1")));
        assert_eq!(us.next(s(3), Heard::Found(record("them", 1, "2"))), Move::Wait(s(2)));
        assert_eq!(us.release(), None, "theirs is not ours to give up");
    }
}
