//! Reads what a decision needs, decides, and writes the mark.

use std::time::Duration;

use api::VirtualMachine;
use futures::future::join;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::{
    Api, Client, ResourceExt,
    core::{ApiResource, DynamicObject},
};
use tokio::{sync::Semaphore, time::timeout};
use tracing::{debug, info, warn};

use super::{
    Deed, EVICTION_SOURCE, Refusal, Request, Scene, Verdict, configuration, decide, decide::vm_of, mark::NotWritten,
};
use crate::vm::Machine;

/// How many requests are worked on at a time. The others wait: all at once would take longer.
const AT_A_TIME: usize = 32;
/// An answer of ours is better than the API server's complaint that there was none.
const DEADLINE: Duration =
    Duration::from_secs(configuration::TIMEOUT as u64).saturating_sub(Duration::from_millis(500));

pub(super) struct Judge {
    client: Client,
    passes: Vec<String>,
    turns: Semaphore,
}

impl Judge {
    pub(super) fn new(client: Client, passes: Vec<String>) -> Judge {
        Judge { client, passes, turns: Semaphore::new(AT_A_TIME) }
    }

    /// Returns why a request is refused, if it is.
    pub(super) async fn judge(&self, request: &Request) -> Option<String> {
        let refusal = match timeout(DEADLINE, self.settle(request)).await {
            Ok(refusal) => refusal,
            Err(_) => {
                let problem = format!("the API server did not answer within {} s", DEADLINE.as_secs());
                Some(Refusal::NotMarked(problem))
            }
        };
        let Request { namespace, pod, user, is_dry_run, .. } = request;
        let message = refusal.as_ref()?.message();
        match refusal? {
            Refusal::Triggered { .. } => {
                info!(target: "lab", "eviction webhook: {namespace}/{pod}, asked by {user}, dry run {is_dry_run}: {message}")
            }
            Refusal::InProgress { .. } | Refusal::Target | Refusal::Starting { .. } => {
                debug!(target: "lab", "eviction webhook: {namespace}/{pod}, asked by {user}: {message}")
            }
            _ => warn!(target: "lab", "eviction webhook: {namespace}/{pod}, asked by {user}: {message}"),
        }
        Some(message)
    }

    /// Decides until the VM holds still. The deadline is the caller's.
    async fn settle(&self, request: &Request) -> Option<Refusal> {
        let _turn = self.turns.acquire().await;
        loop {
            match self.decide(request).await {
                Verdict::Pass(pass) => {
                    debug!(target: "lab", "eviction webhook: {}/{} passes: {pass:?}", request.namespace, request.pod);
                    return None;
                }
                Verdict::Refuse(refusal) => return Some(refusal),
                Verdict::Evacuate(mark) => match mark.write(self.client.clone()).await {
                    Ok(()) => return Some(Refusal::Triggered { namespace: mark.namespace, vm: mark.vm }),
                    Err(NotWritten::Outdated(problem)) => debug!(target: "lab", "eviction webhook: {problem}"),
                    Err(NotWritten::Refused(problem)) => return Some(Refusal::NotMarked(problem)),
                },
            }
        }
    }

    async fn decide(&self, request: &Request) -> Verdict {
        let is_authorized = request.deed == Deed::Deletion && self.passes.contains(&request.user);
        let pod = match &request.found {
            Some(pod) => Ok(Some(Pod::clone(pod))),
            None if is_authorized || request.deed == Deed::Other || request.pod.is_empty() => Ok(None),
            None => {
                let pods: Api<Pod> = Api::namespaced(self.client.clone(), &request.namespace);
                pods.get_opt(&request.pod).await.map_err(|error| error.to_string())
            }
        };
        let vm_name = pod.as_ref().ok().and_then(Option::as_ref).and_then(vm_of).filter(|_| !is_authorized);
        let (vm, is_namespace_ending) = match vm_name {
            // One request less; what is evicted while its namespace ends is deleted a moment later.
            Some(name) if request.deed == Deed::Eviction => (self.vm(&request.namespace, name).await, Ok(false)),
            Some(name) => join(self.vm(&request.namespace, name), self.is_ending(&request.namespace)).await,
            None => (Ok(None), Ok(false)),
        };
        let source =
            vm.as_ref().ok().and_then(Option::as_ref).and_then(|vm| vm.annotations().get(EVICTION_SOURCE).cloned());
        let vm = vm.map(|vm| vm.as_ref().map(Machine::of));
        decide(&Scene {
            request,
            pod: pod.as_ref().map(Option::as_ref).map_err(String::as_str),
            vm: vm.as_ref().map(Option::as_ref).map_err(String::as_str),
            source: source.as_deref(),
            is_namespace_ending: is_namespace_ending.as_ref().map(|is| *is).map_err(String::as_str),
            passes: &self.passes,
            now: Timestamp::now(),
        })
    }

    async fn vm(&self, namespace: &str, name: &str) -> Result<Option<DynamicObject>, String> {
        let resource = ApiResource::erase::<VirtualMachine>(&());
        let vms: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &resource);
        vms.get_opt(name).await.map_err(|error| error.to_string())
    }

    async fn is_ending(&self, namespace: &str) -> Result<bool, String> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let found = namespaces.get_metadata_opt(namespace).await.map_err(|error| error.to_string())?;
        Ok(found.is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_some()))
    }
}
