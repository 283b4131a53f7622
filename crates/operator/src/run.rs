//! The operator as a whole: the lease, the watches, and one reconciler per profile.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use advisor::{Kind, Profile, admission::PolicyMode, kind, machine::Intervals, profiles::PROFILES, record};
use api::virt_platform_config::ApprovalMode;
use kube::Config;
use kube_io::{ApiServer, Clock, RequestError};
use tokio::{sync::watch, task::JoinSet};
use tracing::info;

use crate::{
    Metrics, approval_policy, configs,
    events::Events,
    known_state::KnownState,
    lease::{Leadership, Lease, LeaseSettings},
    malformed::Malformed,
    reconciler::Reconciler,
    reporter::Reporter,
    watch_settings::WatchSettings,
    watches::{self, Watches},
    work_queue::WorkQueue,
};

/// What the API server's audit log calls the operator.
const COMPONENT: &str = "operator";

#[derive(Debug, Clone)]
pub struct OperatorSettings {
    /// The profiles that it reconciles.
    pub profiles: &'static [&'static dyn Profile],
    /// The version of this operator, as recorded with every plan.
    pub version: String,
    pub intervals: Intervals,
    /// What approves a plan where its configuration does not say it.
    pub approval_mode: ApprovalMode,
    /// How many records of each profile are kept.
    pub records_kept: usize,
    /// How the operator keeps the approval policy. None means that it leaves the policy to others.
    pub approval_policy: Option<PolicyMode>,
    /// With a lease, leaders are elected. Without one, no other operator may run.
    pub lease: Option<LeaseSettings>,
    pub readiness: Readiness,
    pub metrics: Metrics,
    pub clock: Clock,
}

impl Default for OperatorSettings {
    fn default() -> Self {
        OperatorSettings::with_clock(Clock::default())
    }
}

impl OperatorSettings {
    /// The usual settings, where both the operator and its metrics follow this clock.
    pub fn with_clock(clock: Clock) -> Self {
        let version = format!("v{}", env!("CARGO_PKG_VERSION"));
        OperatorSettings {
            profiles: PROFILES,
            metrics: Metrics::new(&version, clock.clone()),
            version,
            intervals: Intervals::default(),
            approval_mode: ApprovalMode::default(),
            records_kept: record::KEPT,
            approval_policy: None,
            lease: None,
            readiness: Readiness::default(),
            clock,
        }
    }
}

/// Whether the operator is ready: it leads and has listed its configurations, or it waits to lead.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    pub fn is_ready(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Relaxed);
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("another operator may lead by now; this one stops and has to be started again")]
    LeaseLost,
}

/// Runs the operator until `shutdown` is done. Unfinished work is dropped; the next operator continues it.
pub async fn run(
    config: Config,
    settings: OperatorSettings,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    run_on(connect(config, &settings.metrics)?, settings, shutdown).await
}

/// Connects to an API server. All requests are counted.
pub fn connect(config: Config, metrics: &Metrics) -> Result<ApiServer, RequestError> {
    ApiServer::observed(config, COMPONENT, Arc::new(metrics.clone()))
}

/// The same on an API server that is connected already.
pub async fn run_on(
    api_server: ApiServer,
    settings: OperatorSettings,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let mut shutdown = std::pin::pin!(shutdown);
    let Some(lease) = settings.lease.clone() else {
        tokio::select! {
            biased;
            () = &mut shutdown => {}
            () = work(api_server, &settings, None) => {}
        }
        return Ok(());
    };
    settings.readiness.set(true);
    let mut lease = Lease::new(api_server.clone(), lease, settings.clock.clone());
    let leadership = tokio::select! {
        biased;
        () = &mut shutdown => return Ok(()),
        leadership = lease.acquire() => leadership,
    };
    // From now on it is ready when it has listed the configurations.
    settings.readiness.set(false);
    let lost = tokio::select! {
        biased;
        () = &mut shutdown => false,
        () = lease.keep() => true,
        () = work(api_server, &settings, Some(leadership)) => true,
    };
    // Unfinished work has been dropped by now.
    match lost {
        true => Err(RunError::LeaseLost),
        false => {
            lease.release().await;
            Ok(())
        }
    }
}

/// Runs all tasks. They end when this future is dropped.
async fn work(api_server: ApiServer, settings: &OperatorSettings, leadership: Option<Leadership>) {
    let metrics = &settings.metrics;
    let _leading = Leading::begin(metrics);
    let watching = WatchSettings { clock: settings.clock.clone(), observer: Arc::new(metrics.clone()) };
    let client = api_server.watch_client().clone();
    let (profiles, clock) = (settings.profiles, &settings.clock);
    let mut tasks = JoinSet::new();
    let (events, sender) = Events::new(api_server.clone(), clock.clone());
    tasks.spawn(sender);
    let queues: Vec<Arc<WorkQueue>> = profiles.iter().map(|_| Arc::default()).collect();
    let (definitions, known) = watch::channel(BTreeMap::new());
    let watches = Arc::new(Watches::new(client.clone(), known, queues.clone(), watching.clone()));
    for (position, (profile, queue)) in profiles.iter().zip(&queues).enumerate() {
        let reconciler = Reconciler {
            position,
            profile: *profile,
            api_server: api_server.clone(),
            reporter: Reporter { events: events.clone(), metrics: metrics.clone() },
            queue: queue.clone(),
            watches: watches.clone(),
            version: settings.version.clone(),
            leadership: leadership.clone(),
            intervals: settings.intervals,
            approval_mode: settings.approval_mode,
            records_kept: settings.records_kept,
            known_records: record::KnownRecords::default(),
            clock: clock.clone(),
            known: KnownState::default(),
            failures: 0,
        };
        tasks.spawn(reconciler.run());
    }
    let kinds = custom_kinds(profiles);
    tasks.spawn(watches::definitions(client.clone(), definitions, queues.clone(), kinds, watching.clone()));
    let by_name = profiles.iter().zip(queues).map(|(profile, queue)| (profile.about().name, queue)).collect();
    let malformed = Arc::<Malformed>::default();
    let seen = (metrics.clone(), watching.clone());
    tasks.spawn(configs::watch(client, by_name, malformed.clone(), settings.readiness.clone(), seen));
    if let Some(mode) = settings.approval_policy {
        tasks.spawn(approval_policy::keep(api_server.clone(), mode, settings.intervals.recheck, watching));
    }
    let clock = clock.clone();
    tasks.spawn(async move { malformed.report(api_server, events, clock).await });
    info!(version = settings.version, "the operator is running");
    // No task ends. A panic in one of them ends the process, and the next process continues from the recorded status.
    if let Some(Err(error)) = tasks.join_next().await {
        std::panic::resume_unwind(error.into_panic());
    }
}

/// As long as it lives, the metrics say that this replica leads.
struct Leading<'a>(&'a Metrics);

impl<'a> Leading<'a> {
    fn begin(metrics: &'a Metrics) -> Self {
        metrics.leads(true);
        Leading(metrics)
    }
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        self.0.leads(false);
    }
}

/// The kinds of the profiles whose definitions come and go.
fn custom_kinds(profiles: &[&dyn Profile]) -> Vec<&'static Kind> {
    let is_custom = |kind: &&Kind| kind.group.contains('.') && **kind != kind::CUSTOM_RESOURCE_DEFINITION;
    let mut kinds: Vec<&'static Kind> =
        profiles.iter().flat_map(|profile| profile.access()).map(|access| access.kind()).filter(is_custom).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    /// W36 (scattered profile code), D14 (profile-free operator): nothing here knows a profile; the definitions to
    /// watch follow from what profiles declare.
    #[test]
    fn the_definition_of_every_kind_that_a_profile_names_is_watched() {
        let names: Vec<&str> = custom_kinds(PROFILES).iter().map(|kind| kind.kind).collect();
        let expected = [
            "ClusterVersion",
            "HyperConverged",
            "MachineConfig",
            "MachineConfigPool",
            "KubeDescheduler",
            "MachineConfiguration",
        ];
        assert_eq!(names, expected);
    }
}
