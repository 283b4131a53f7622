//! Whether the configuration was confirmed recently enough to write to somebody else's object.
//!
//! A process may be stopped at any time, between its last look at the configuration and a write too. When it continues, the
//! consent may be withdrawn and another operator may lead. So a write is preceded by a confirmation that is younger than a second
//! by a clock that also runs while the process is stopped. Usually that is the status update that says that the item is applied.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::{Outcome, Request, Session, Step};
use crate::writing;

/// The age up to which a confirmation counts in any case.
const RECENT: Duration = Duration::from_secs(1);

/// How often a session confirms the configuration for one write. More often means that nothing can be relied on for now.
const MAX_ATTEMPTS: usize = 5;

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Confirmation {
    /// When the request was sent whose answer confirms the configuration: it may be as old as that.
    asked: Option<Duration>,
    /// How long it took until the next request could be sent.
    took: Option<Duration>,
    /// The same of the confirmation before.
    previous: Option<Duration>,
    /// How often the write that comes next was put off.
    attempts: usize,
}

impl Confirmation {
    fn ask(&mut self, uptime: Duration) {
        self.previous = self.took.take().or(self.previous);
        self.asked = Some(uptime);
    }

    fn sending(&mut self, uptime: Duration) {
        if self.took.is_none() {
            self.took = self.asked.map(|asked| uptime.saturating_sub(asked));
        }
    }

    /// A confirmation that took about as long as the one before it was slow on the way; the process was not stopped meanwhile.
    fn is_recent(&self, uptime: Duration) -> bool {
        let limit = self.previous.map_or(RECENT, |previous| RECENT.max(previous * 2));
        self.asked.is_some_and(|asked| uptime.saturating_sub(asked) <= limit)
    }
}

impl Session {
    /// The step to take in place of this one. To be called right before a request is sent. `uptime` is the time since an arbitrary
    /// start, by a clock that also runs while the process is stopped.
    pub fn before_sending(&mut self, step: Step, uptime: Duration) -> Step {
        self.confirmation.sending(uptime);
        let Step::Send(request) = step else { return step };
        match &request {
            Request::UpdateStatus(_) | Request::ReadConfig => self.confirmation.ask(uptime),
            Request::WriteTarget { request: writing::Request::Read, .. } => {}
            Request::CreateRecord(_) | Request::WriteTarget { .. } => {
                if !self.confirmation.is_recent(uptime) {
                    return self.confirm_first(request, uptime);
                }
                self.confirmation.attempts = 0;
            }
            _ => {}
        }
        Step::Send(request)
    }

    fn confirm_first(&mut self, request: Request, uptime: Duration) -> Step {
        self.confirmation.attempts += 1;
        if self.confirmation.attempts > MAX_ATTEMPTS {
            return Step::Done(Outcome::Retry("the configuration cannot be confirmed in time"));
        }
        // A record is decided on again.
        if let Request::WriteTarget { planned, request } = request {
            self.postponed = Some((planned, request));
        }
        self.confirmation.ask(uptime);
        Step::Send(Request::ReadConfig)
    }

    /// The write of this item that was put off until the configuration is confirmed.
    pub(super) fn take_postponed(&mut self, item: &str) -> Option<Step> {
        let (planned, request) = self.postponed.take()?;
        let is_same = planned.item.name == item && self.writing.is_some();
        is_same.then_some(Step::Send(Request::WriteTarget { planned, request }))
    }
}
