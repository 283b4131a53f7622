//! The time of stand-ins: that of the machine, or one that is simulated.
//! Simulated time stands still while a stand-in has something to do, and then jumps to the next moment that one of them waits for. So
//! a rollout takes exactly the waits in it, however busy the machine is, and nobody waits for them.

mod simulation;

use std::{
    future::{Future, pending, poll_fn},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use kube::core::ApiResource;
use kube_io::{RequestError, answer_within};
use tokio::time::sleep;

use crate::{DEADLINE, objects::Objects};
pub(crate) use simulation::Busy;
pub use simulation::Simulation;
use simulation::{Known, Simulated};

/// By default that of the machine.
#[derive(Debug, Clone, Default)]
pub struct Time(Option<Arc<Simulated>>);

impl Time {
    pub fn now(&self) -> Timestamp {
        self.0.as_ref().map_or_else(Timestamp::now, |simulated| simulated.now())
    }

    /// Without a moment to wait for, it never ends.
    pub(crate) async fn sleep_until(&self, then: Option<Timestamp>) {
        match (&self.0, then) {
            (_, None) => pending().await,
            (None, Some(then)) => sleep(Duration::try_from(then.duration_since(self.now())).unwrap_or_default()).await,
            (Some(simulated), Some(then)) => simulated.sleep_until(then).await,
        }
    }

    pub(crate) async fn sleep(&self, duration: Duration) {
        self.sleep_until(Some(self.after(duration))).await;
    }

    /// The moment after so much time.
    pub(crate) fn after(&self, duration: Duration) -> Timestamp {
        self.now().checked_add(duration).unwrap_or(Timestamp::MAX)
    }

    /// None if it takes longer.
    pub(crate) async fn timeout<T>(&self, limit: Duration, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            result = future => Some(result),
            () = self.sleep(limit) => None,
        }
    }

    /// Time stands still until the result is dropped.
    pub(crate) fn busy(&self) -> Busy {
        Busy::of(self.0.clone())
    }

    /// Time stands still while this future is polled and before it is polled for the first time. It has to wait by the functions
    /// of this type, or else time passes meanwhile.
    pub(crate) fn working<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        let time = self.clone();
        let mut start = Some(self.busy());
        let mut future = Box::pin(future);
        poll_fn(move |context| {
            let _polled = time.busy();
            drop(start.take());
            future.as_mut().poll(context)
        })
    }

    /// A request that may change something: time stands still until every stand-in has seen it.
    pub(crate) async fn write<T>(
        &self,
        doing: String,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, RequestError> {
        let _sent = self.busy();
        let answer = answer_within(DEADLINE, doing, request).await;
        self.wrote();
        answer
    }

    /// A request that changes nothing.
    pub(crate) async fn read<T>(
        &self,
        doing: String,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, RequestError> {
        let _sent = self.busy();
        answer_within(DEADLINE, doing, request).await
    }

    /// Something may have changed that stand-ins have to see.
    pub(crate) fn wrote(&self) {
        if let Some(simulated) = &self.0 {
            simulated.wrote();
        }
    }

    /// What a stand-in knows of a kind, and has acted on. `labels` selects the objects that it looks at.
    pub(crate) fn knows<K: kube::ResourceExt>(&self, kind: ApiResource, labels: &'static str, objects: &Objects<K>) {
        if let Some(simulated) = &self.0 {
            simulated.knows(Known { kind, labels, versions: objects.versions() });
        }
    }
}

#[cfg(test)]
mod tests;
