//! The operator as a whole: the lease, the watches, and a steward for every profile.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use advisor::{Kind, Profile, kind, machine::Rhythm, profiles::PROFILES};
use kube::Config;
use tokio::{sync::watch, task::JoinSet};
use tracing::info;

use crate::{
    Kubernetes, RequestError, Surroundings,
    events::Events,
    inbox::Inbox,
    lease::{Lease, LeaseSettings},
    malformed::Malformed,
    root,
    steward::{State, Steward},
    watches::{self, Watches},
};

/// What the API server's audit log calls the operator.
const COMPONENT: &str = "operator";

#[derive(Debug, Clone)]
pub struct Settings {
    /// The profiles that it stands for.
    pub profiles: &'static [&'static dyn Profile],
    /// The version of this operator, as recorded with every plan.
    pub version: String,
    pub rhythm: Rhythm,
    /// Leaders are elected; otherwise there must be only one of us.
    pub lease: Option<LeaseSettings>,
    pub readiness: Readiness,
    pub surroundings: Surroundings,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            profiles: PROFILES,
            version: format!("v{}", env!("CARGO_PKG_VERSION")),
            rhythm: Rhythm::default(),
            lease: None,
            readiness: Readiness::default(),
            surroundings: Surroundings::default(),
        }
    }
}

/// Whether the operator is of use: it leads and knows its configurations, or it waits to lead.
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

/// Runs the operator until `shutdown` is done. What was under way is then dropped; the next one takes it up.
pub async fn run(config: Config, settings: Settings, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
    run_on(Kubernetes::new(config, COMPONENT)?, settings, shutdown).await
}

/// The same on an API server that was connected to already.
pub async fn run_on(
    kubernetes: Kubernetes,
    settings: Settings,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let mut shutdown = std::pin::pin!(shutdown);
    let Some(lease) = settings.lease.clone() else {
        tokio::select! {
            biased;
            () = &mut shutdown => {}
            () = work(kubernetes, &settings, None) => {}
        }
        return Ok(());
    };
    settings.readiness.set(true);
    let mut lease = Lease::new(kubernetes.clone(), lease, settings.surroundings.clone());
    let epoch = tokio::select! {
        biased;
        () = &mut shutdown => return Ok(()),
        epoch = lease.acquire() => epoch,
    };
    let lost = tokio::select! {
        biased;
        () = &mut shutdown => false,
        () = lease.keep() => true,
        () = work(kubernetes, &settings, Some(epoch)) => true,
    };
    // By now nothing works any more: what was under way has been dropped.
    match lost {
        true => Err(RunError::LeaseLost),
        false => {
            lease.release().await;
            Ok(())
        }
    }
}

/// Works for ever. Everything that it started ends when it is dropped.
async fn work(kubernetes: Kubernetes, settings: &Settings, epoch: Option<i64>) {
    let client = kubernetes.client().clone();
    let (profiles, surroundings) = (settings.profiles, &settings.surroundings);
    let mut tasks = JoinSet::new();
    let (events, sender) = Events::new(kubernetes.clone(), surroundings.clone());
    tasks.spawn(sender);
    let inboxes: Vec<Arc<Inbox>> = profiles.iter().map(|_| Arc::default()).collect();
    let (definitions, known) = watch::channel(BTreeMap::new());
    let watches = Arc::new(Watches::new(client.clone(), known, inboxes.clone(), surroundings.clone()));
    for (position, (profile, inbox)) in profiles.iter().zip(&inboxes).enumerate() {
        let steward = Steward {
            position,
            profile: *profile,
            kubernetes: kubernetes.clone(),
            events: events.clone(),
            inbox: inbox.clone(),
            watches: watches.clone(),
            version: settings.version.clone(),
            epoch,
            rhythm: settings.rhythm,
            surroundings: surroundings.clone(),
            state: State::default(),
        };
        tasks.spawn(steward.work());
    }
    let kinds = custom_kinds(profiles);
    let seen = watches::definitions(client.clone(), definitions, inboxes.clone(), kinds, surroundings.clone());
    tasks.spawn(seen);
    let by_name = profiles.iter().zip(inboxes).map(|(profile, inbox)| (profile.about().name, inbox)).collect();
    let malformed = Arc::<Malformed>::default();
    let seen = root::watch(client, by_name, malformed.clone(), settings.readiness.clone(), surroundings.clone());
    tasks.spawn(seen);
    let surroundings = surroundings.clone();
    tasks.spawn(async move { malformed.report(kubernetes, events, surroundings).await });
    info!(version = settings.version, "the operator is running");
    // None of them ends; a panic in one of them ends the process, and a new one starts from what was recorded.
    if let Some(Err(error)) = tasks.join_next().await {
        std::panic::resume_unwind(error.into_panic());
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

    /// W36, D14: nothing here knows a profile; the definitions to watch follow from what profiles declare.
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
