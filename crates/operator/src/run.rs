//! The operator as a whole: the watches, and a steward for every profile.

use std::{collections::BTreeMap, future::Future, sync::Arc};

use advisor::{Kind, kind, machine::Rhythm, profiles::PROFILES};
use kube::Config;
use tokio::{sync::watch, task::JoinSet};
use tracing::info;

use crate::{
    Kubernetes, RequestError,
    events::Events,
    inbox::Inbox,
    root,
    steward::{State, Steward},
    watches::{self, Watches},
};

/// The kinds whose definitions come and go.
static KINDS: [&Kind; 5] = [
    &kind::KUBE_DESCHEDULER,
    &kind::MACHINE_CONFIG,
    &kind::MACHINE_CONFIG_POOL,
    &kind::MACHINE_CONFIGURATION,
    &kind::HYPER_CONVERGED,
];

#[derive(Debug, Clone)]
pub struct Settings {
    /// The version of this operator, as recorded with every plan.
    pub version: String,
    pub rhythm: Rhythm,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { version: format!("v{}", env!("CARGO_PKG_VERSION")), rhythm: Rhythm::default() }
    }
}

/// Runs the operator until `shutdown` is done. What was under way is then dropped; the next one takes it up.
pub async fn run(config: Config, settings: Settings, shutdown: impl Future<Output = ()>) -> Result<(), RequestError> {
    let kubernetes = Kubernetes::new(config)?;
    let client = kubernetes.client().clone();
    let events = Events::start(kubernetes.clone());
    let inboxes: Vec<Arc<Inbox>> = PROFILES.iter().map(|_| Arc::default()).collect();
    let (definitions, known) = watch::channel(BTreeMap::new());
    let watches = Arc::new(Watches::new(client.clone(), known, inboxes.clone()));

    let mut tasks = JoinSet::new();
    for (position, (profile, inbox)) in PROFILES.iter().zip(&inboxes).enumerate() {
        let steward = Steward {
            position,
            profile: *profile,
            kubernetes: kubernetes.clone(),
            events: events.clone(),
            inbox: inbox.clone(),
            watches: watches.clone(),
            version: settings.version.clone(),
            rhythm: settings.rhythm,
            state: State::default(),
        };
        tasks.spawn(steward.work());
    }
    tasks.spawn(watches::definitions(client, definitions, inboxes.clone(), KINDS.to_vec()));
    let by_name = PROFILES.iter().zip(inboxes).map(|(profile, inbox)| (profile.about().name, inbox)).collect();
    tasks.spawn(root::watch(kubernetes, events, by_name));
    info!(version = settings.version, "the operator is running");

    tokio::select! {
        () = shutdown => {}
        // None of them ends; a panic in one of them ends the process, and a new one starts from what was recorded.
        Some(Err(error)) = tasks.join_next() => std::panic::resume_unwind(error.into_panic()),
    }
    info!("the operator stops");
    Ok(())
}
