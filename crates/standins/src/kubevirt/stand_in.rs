//! The handle of a running stand-in.

use kube::Client;
use serving::ServeError;
use tokio::{sync::watch, task::JoinSet};

use super::{KubeVirtSettings, controller::Controller, webhook};
use crate::Time;

/// The webhook of the stand-in could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("serving admission reviews: {0}")]
    Serve(#[from] ServeError),
    #[error("registering the webhook for evictions: {0}")]
    Register(Box<kube::Error>),
}

/// A running stand-in. It stops when dropped; the API server then refuses evictions, as it does when KubeVirt is down.
#[derive(Debug)]
pub struct KubeVirt {
    settings: watch::Sender<KubeVirtSettings>,
    _tasks: JoinSet<()>,
}

impl KubeVirt {
    /// Starts the stand-in and registers its webhook. Needs a runtime, and an API server that reaches the loopback device of this machine.
    pub async fn start(client: Client, settings: KubeVirtSettings) -> Result<KubeVirt, StartError> {
        KubeVirt::start_in(client, settings, &Time::default()).await
    }

    /// With another time than that of the machine.
    pub async fn start_in(client: Client, settings: KubeVirtSettings, time: &Time) -> Result<KubeVirt, StartError> {
        let (settings, receiver) = watch::channel(settings);
        let mut tasks = JoinSet::new();
        tasks.spawn(webhook::start(client.clone(), time.clone()).await?);
        tasks.spawn(time.working(Controller::new(client, time.clone(), receiver).run()));
        Ok(KubeVirt { settings, _tasks: tasks })
    }

    /// Changes settings. They apply at once, also to what has begun.
    pub fn change(&self, change: impl FnOnce(&mut KubeVirtSettings)) {
        self.settings.send_modify(change);
    }
}
