//! The reconciler of one configuration: it waits for changes, and runs a session of [`advisor::session`] whenever one is due.

use std::{sync::Arc, time::Duration};

use advisor::{Profile, machine::Intervals, record::KnownRecords};
use api::virt_platform_config::ApprovalMode;
use kube_io::{ApiServer, Backoff, BackoffPolicy, Class, Clock, RequestError};
use tokio::time::{Instant, sleep_until};
use tracing::warn;

use crate::{
    advertise, known_state::KnownState, lease::Leadership, records, reporter::Reporter, watches::Watches,
    work_queue::WorkQueue,
};

/// After so many failures in a row an Event reports them.
pub(crate) const REPORTED_FAILURES: usize = 4;

/// The wait for a kind whose definition has just changed.
const SETTLING_RETRY: Duration = Duration::from_secs(1);

pub(crate) struct Reconciler {
    /// The position of its queue among those of all reconcilers.
    pub(crate) position: usize,
    pub(crate) profile: &'static dyn Profile,
    pub(crate) api_server: ApiServer,
    pub(crate) reporter: Reporter,
    pub(crate) queue: Arc<WorkQueue>,
    pub(crate) watches: Arc<Watches>,
    pub(crate) version: String,
    /// If leaders are elected.
    pub(crate) leadership: Option<Leadership>,
    pub(crate) intervals: Intervals,
    pub(crate) approval_mode: ApprovalMode,
    /// How many records of the profile are kept.
    pub(crate) records_kept: usize,
    /// The records of the profile, as far as they are known.
    pub(crate) known_records: KnownRecords,
    pub(crate) clock: Clock,
    pub(crate) known: KnownState,
    /// Failures in a row.
    pub(crate) failures: usize,
}

impl Reconciler {
    pub(crate) async fn run(mut self) {
        let mut backoff = Backoff::new(BackoffPolicy::REQUESTS, self.clock.clone());
        let mut due: Option<Instant> = None;
        loop {
            let timer = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // Changes first: a reconciliation that is due anyway starts from the newest observations.
                biased;
                () = self.queue.changed() => {
                    let has_changed = self.known.merge(self.queue.take());
                    self.report_forbidden();
                    if !has_changed {
                        continue;
                    }
                }
                () = timer => {
                    if self.failures == 0 {
                        self.known.facts.forget_all();
                    }
                }
            }
            due = match self.reconcile().await {
                Ok(rest) => {
                    backoff.reset();
                    self.failures = 0;
                    rest.map(|rest| Instant::now() + self.wait(rest))
                }
                Err(error) => {
                    let wait = backoff.failed().max(error.retry_after.unwrap_or_default());
                    self.failed(&error, wait);
                    Some(Instant::now() + wait)
                }
            };
            self.watches.subscribe(self.position, &self.known.watched_queries());
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.profile.about().name
    }

    /// The wait until the next reconciliation, jittered if it is a regular one, and short while a kind is settling.
    fn wait(&self, rest: Duration) -> Duration {
        if rest == self.intervals.prerequisites && self.known.is_settling() {
            return SETTLING_RETRY.min(rest);
        }
        let is_regular = rest == self.intervals.prerequisites || rest == self.intervals.recheck;
        if is_regular { self.clock.jittered(rest) } else { rest }
    }

    fn failed(&mut self, error: &RequestError, wait: Duration) {
        warn!(config = self.name(), %error, retry_in = ?wait, "could not go on");
        self.failures += 1;
        self.reporter.metrics.failed(error);
        if self.failures == REPORTED_FAILURES
            && let Some(config) = &self.known.config
        {
            self.reporter.failing(config, error);
        }
        // The object went away between the read and this request, so what was read no longer holds.
        if matches!(error.class, Class::KindMissing | Class::NotFound) {
            self.known.facts.forget_all();
        }
    }

    fn report_forbidden(&mut self) {
        let Some(config) = self.known.config.clone() else { return };
        for (query, message) in self.known.take_forbidden() {
            self.reporter.forbidden(&config, &query, &message);
        }
    }

    /// Returns how long to wait for the next reconciliation, if nothing changes before.
    async fn reconcile(&mut self) -> Result<Option<Duration>, RequestError> {
        let about = self.profile.about();
        self.close_abandoned_records().await?;
        let Some(config) = self.known.config.clone() else {
            self.known.facts.forget_all();
            if about.advertised && self.known.is_synced {
                advertise::offer(&self.api_server, about).await?;
            }
            return Ok(None);
        };
        if about.advertised {
            advertise::refresh(&self.api_server, about, &config).await?;
        }
        self.run_session((*config).clone()).await
    }

    /// A configuration that does not exist, or that has no status yet, may have had a predecessor that was deleted while its plan was
    /// being applied. Only then are records looked for.
    async fn close_abandoned_records(&mut self) -> Result<(), RequestError> {
        let config = self.known.config.as_ref();
        let uid = config.and_then(|config| config.metadata.uid.clone());
        let has_status = config.is_some_and(|config| config.status.is_some());
        // Since a configuration was missing, no plan was applied that could have left a record.
        let is_settled = self.known.successor.as_ref().is_some_and(|known| known.is_none() || *known == uid);
        if self.known.is_synced && !has_status && !is_settled {
            records::close_abandoned(&self.api_server, self.name(), uid.as_deref(), self.clock.now()).await?;
        }
        self.known.successor = self.known.is_synced.then_some(uid);
        Ok(())
    }

    pub(crate) fn error(&self, message: String) -> RequestError {
        RequestError::other(format!("reconciling VirtPlatformConfig {}", self.name()), message, Class::Other)
    }
}
