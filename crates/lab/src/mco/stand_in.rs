//! The handle of a running stand-in.

use kube::Client;
use tokio::{sync::watch, task::JoinHandle};

use super::{Error, Settings, controller::Controller};

/// A running stand-in. It stops when dropped.
#[derive(Debug)]
pub struct StandIn {
    settings: watch::Sender<Settings>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl StandIn {
    /// Starts playing the machine config operator. Needs a runtime.
    ///
    /// The client should not retry by itself (`Config::default_retry = false`): an eviction that a disruption budget
    /// refuses would be sent again and again behind our back.
    pub fn start(client: Client, settings: Settings) -> StandIn {
        let (settings, settings_seen) = watch::channel(settings);
        let (stop, stop_seen) = watch::channel(false);
        let task = tokio::spawn(Controller::new(client, settings_seen, stop_seen).run());
        StandIn { settings, stop, task }
    }

    /// The settings in force.
    pub fn settings(&self) -> Settings {
        self.settings.borrow().clone()
    }

    /// Changes settings while it runs. They count at once, for what is under way too.
    pub fn change(&self, change: impl FnOnce(&mut Settings)) {
        self.settings.send_modify(change);
    }

    /// Finishes the request under way and stops. Nodes stay as they are; another stand-in takes over from there.
    pub async fn shutdown(mut self) -> Result<(), Error> {
        self.stop.send_replace(true);
        Ok((&mut self.task).await?)
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}
