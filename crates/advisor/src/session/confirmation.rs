//! Whether the configuration was confirmed recently enough to write to somebody else's object. A process may be stopped between its
//! last look at the configuration and a write; when it continues, the consent may be withdrawn and another operator may lead. Usually
//! the status update that says that the item is applied is the confirmation.

#[cfg(test)]
mod tests;

use std::{collections::VecDeque, time::Duration};

use super::{Outcome, Request, Session, Step};
use crate::writing;

/// The age up to which a confirmation counts in any case, by a clock that also runs while the process is stopped.
const RECENT: Duration = Duration::from_secs(1);

/// How often a session confirms the configuration for one write. More often means that nothing can be relied on for now.
const MAX_ATTEMPTS: usize = 5;

/// How many round trips are remembered. Only if the process is stopped during every one of them does a stop look like a slow way.
const REMEMBERED: usize = 4;

/// How long the last requests took until the next one could be sent. It outlives a session, because a session has few requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoundTrips(VecDeque<Duration>);

impl RoundTrips {
    fn add(&mut self, took: Duration) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(took);
    }

    /// The time of one round trip, if enough are known to tell a slow way from a stopped process.
    fn fastest(&self) -> Option<Duration> {
        self.0.iter().min().filter(|_| self.0.len() == REMEMBERED).copied()
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Confirmation {
    /// When the request was sent whose answer confirms the configuration: it may be as old as that.
    asked: Option<Duration>,
    /// When the request was sent that is under way, if it goes to the API server and back once.
    sent: Option<Duration>,
    pub(super) round_trips: RoundTrips,
    /// How often the write that comes next was put off.
    attempts: usize,
}

impl Confirmation {
    fn answered(&mut self, uptime: Duration) {
        if let Some(sent) = self.sent.take() {
            self.round_trips.add(uptime.saturating_sub(sent));
        }
    }

    /// A confirmation, and a record after it, take two round trips.
    fn is_recent(&self, uptime: Duration) -> bool {
        let limit = self.round_trips.fastest().map_or(RECENT, |fastest| RECENT.max(fastest * 2));
        self.asked.is_some_and(|asked| uptime.saturating_sub(asked) <= limit)
    }
}

impl Session {
    /// With what earlier sessions have learned about the way to the API server.
    pub fn with_round_trips(mut self, known: RoundTrips) -> Self {
        self.confirmation.round_trips = known;
        self
    }

    pub fn round_trips(&self) -> &RoundTrips {
        &self.confirmation.round_trips
    }

    /// How recently the configuration was confirmed, for comparisons in tests.
    pub fn confirmation(&self) -> impl std::fmt::Debug {
        &self.confirmation
    }

    /// The step to take in place of this one. To be called right before a request is sent. `uptime` is the time since an arbitrary
    /// start, by a clock that also runs while the process is stopped.
    pub fn before_sending(&mut self, step: Step, uptime: Duration) -> Step {
        self.confirmation.answered(uptime);
        let Step::Send(request) = step else { return step };
        let request = match request {
            Request::WriteTarget { request: writing::Request::Read, .. } => request,
            Request::CreateRecord(_) | Request::WriteTarget { .. } if !self.confirmation.is_recent(uptime) => {
                match self.confirm_first(request) {
                    Step::Send(confirmation) => confirmation,
                    done => return done,
                }
            }
            Request::CreateRecord(_) | Request::WriteTarget { .. } => {
                self.confirmation.attempts = 0;
                request
            }
            request => request,
        };
        if matches!(request, Request::UpdateStatus(_) | Request::ReadConfig) {
            self.confirmation.asked = Some(uptime);
        }
        // What is known already is not asked for again, so these may take no time at all.
        let may_be_known = matches!(request, Request::FetchFacts | Request::MakePlan { .. });
        self.confirmation.sent = (!may_be_known).then_some(uptime);
        Step::Send(request)
    }

    fn confirm_first(&mut self, request: Request) -> Step {
        self.confirmation.attempts += 1;
        if self.confirmation.attempts > MAX_ATTEMPTS {
            return Step::Done(Outcome::Retry("the configuration cannot be confirmed in time"));
        }
        // A record is decided on again.
        if let Request::WriteTarget { planned, request } = request {
            self.postponed = Some((planned, request));
        }
        Step::Send(Request::ReadConfig)
    }

    /// The write of this item that was put off until the configuration is confirmed.
    pub(super) fn take_postponed(&mut self, item: &str) -> Option<Step> {
        let (planned, request) = self.postponed.take()?;
        let is_same = planned.item.name == item && self.writing.is_some();
        is_same.then_some(Step::Send(Request::WriteTarget { planned, request }))
    }
}
