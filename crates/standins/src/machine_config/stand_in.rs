//! The handle of a running stand-in.

use kube::Client;
use tokio::{
    sync::watch,
    task::{JoinError, JoinHandle},
};

use super::{MachineConfigSettings, controller::Controller};
use crate::Time;

/// The stand-in panicked.
#[derive(Debug, thiserror::Error)]
#[error("the stand-in ended without being asked to: {0}")]
pub struct UnexpectedEnd(#[from] JoinError);

/// A running stand-in. It stops when dropped.
#[derive(Debug)]
pub struct StandIn {
    settings: watch::Sender<MachineConfigSettings>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl StandIn {
    /// Starts the stand-in. Needs a runtime.
    ///
    /// The client must not retry by itself (`Config::default_retry = false`): it would repeat evictions that a disruption
    /// budget refuses.
    pub fn start(client: Client, settings: MachineConfigSettings) -> StandIn {
        StandIn::start_in(client, settings, &Time::default())
    }

    /// With another time than that of the machine.
    pub fn start_in(client: Client, settings: MachineConfigSettings, time: &Time) -> StandIn {
        let (settings, settings_receiver) = watch::channel(settings);
        let (stop, stop_receiver) = watch::channel(false);
        let task = tokio::spawn(time.working(Controller::new(client, time, settings_receiver, stop_receiver).run()));
        StandIn { settings, stop, task }
    }

    /// The current settings.
    pub fn settings(&self) -> MachineConfigSettings {
        self.settings.borrow().clone()
    }

    /// Changes settings. They apply at once, also to updates that have begun.
    pub fn change(&self, change: impl FnOnce(&mut MachineConfigSettings)) {
        self.settings.send_modify(change);
    }

    /// Finishes the current request and stops. Nodes stay as they are; the next stand-in continues from there.
    pub async fn shutdown(mut self) -> Result<(), UnexpectedEnd> {
        self.stop.send_replace(true);
        Ok((&mut self.task).await?)
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}
