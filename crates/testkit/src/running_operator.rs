//! The operator as a task of the test process, under its own service account.

use std::time::Duration;

use advisor::machine::Intervals;
use operator::OperatorSettings;
use tokio::{sync::oneshot, task::JoinHandle};

use crate::{audit::ForbiddenRequests, platform::Platform};

/// The user name of the operator in the audit log.
pub const OPERATOR: &str = "system:serviceaccount:openshift-cnv:controller-manager";

/// An operator with the permissions that it is shipped with. It stops with the value.
pub struct RunningOperator {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    forbidden: ForbiddenRequests,
}

impl RunningOperator {
    pub async fn start(platform: &Platform) -> RunningOperator {
        RunningOperator::start_with(platform, OperatorSettings::default()).await
    }

    /// With another interval of rechecks, also for missing prerequisites.
    pub async fn rechecking_every(platform: &Platform, interval: Duration) -> RunningOperator {
        let intervals = Intervals { recheck: interval, prerequisites: interval, ..Intervals::default() };
        RunningOperator::start_with(platform, OperatorSettings { intervals, ..OperatorSettings::default() }).await
    }

    pub async fn start_with(platform: &Platform, mut settings: OperatorSettings) -> RunningOperator {
        // No test waits for a minute.
        settings.intervals.settle = settings.intervals.settle.min(Duration::from_secs(1));
        let config = platform.cluster.access().config(&platform.operator().await).await.unwrap();
        let forbidden = platform.forbidden_requests().await;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            operator::run(config, settings, async {
                let _ = stopped.await;
            })
            .await
            .unwrap();
        });
        RunningOperator { stop: Some(stop), task, forbidden }
    }

    /// Stops the operator. Fails if a request of it was forbidden.
    pub async fn stop(mut self) {
        self.end().await;
        self.forbidden.assert_none().await;
    }

    /// Stops the operator without a check of its permissions, for tests that took some away.
    pub async fn end(&mut self) {
        let _ = self.stop.take().unwrap().send(());
        let task = std::mem::replace(&mut self.task, tokio::spawn(async {}));
        task.await.unwrap();
    }

    /// Whether the operator still runs. Only a panic ends it by itself.
    pub fn is_alive(&self) -> bool {
        !self.task.is_finished()
    }
}

impl Drop for RunningOperator {
    fn drop(&mut self) {
        self.task.abort();
    }
}
