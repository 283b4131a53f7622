//! Handles an admission request: reads what the decision needs, decides, and records the eviction request.

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
    AdmissionRequest, Denial, EVICTION_SOURCE, Input, MigrationAwareSettings, Operation, Outcome, Step, configuration,
    decide, decide::vm_of, eviction_request::WriteError, migration_aware,
};
use crate::vm::Vm;

/// How many requests are handled at the same time. More would make all of them slower.
const CONCURRENCY: usize = 32;
/// Shorter than the API server's timeout, so that the client gets our message.
const DEADLINE: Duration =
    Duration::from_secs(configuration::TIMEOUT as u64).saturating_sub(Duration::from_millis(500));

pub(super) struct Handler {
    client: Client,
    exempt_users: Vec<String>,
    migration_aware: MigrationAwareSettings,
    permits: Semaphore,
}

impl Handler {
    pub(super) fn new(client: Client, exempt_users: Vec<String>, migration_aware: MigrationAwareSettings) -> Handler {
        Handler { client, exempt_users, migration_aware, permits: Semaphore::new(CONCURRENCY) }
    }

    /// Returns the message of the denial, or none if the request is allowed.
    pub(super) async fn handle(&self, request: &AdmissionRequest) -> Option<String> {
        let AdmissionRequest { namespace, pod, user, is_dry_run, .. } = request;
        let denial = match timeout(DEADLINE, self.outcome(request)).await {
            Ok(Outcome::Allowed(reason)) => {
                debug!(target: "lab", "eviction webhook: {namespace}/{pod} passes: {reason:?}");
                return None;
            }
            Ok(Outcome::Denied(denial)) => denial,
            Err(_) => Denial::NotRecorded(format!("the API server did not answer within {} s", DEADLINE.as_secs())),
        };
        let message = denial.message();
        match denial {
            Denial::Triggered { .. } => {
                info!(target: "lab", "eviction webhook: {namespace}/{pod}, asked by {user}, dry run {is_dry_run}: {message}")
            }
            Denial::InProgress { .. }
            | Denial::Migrating { .. }
            | Denial::CoolingDown { .. }
            | Denial::MigrationTarget
            | Denial::Starting { .. } => {
                debug!(target: "lab", "eviction webhook: {namespace}/{pod}, asked by {user}: {message}")
            }
            _ => warn!(target: "lab", "eviction webhook: {namespace}/{pod}, asked by {user}: {message}"),
        }
        Some(message)
    }

    /// Decides again whenever the VM has changed meanwhile. The caller sets the deadline.
    async fn outcome(&self, request: &AdmissionRequest) -> Outcome {
        let _permit = self.permits.acquire().await;
        loop {
            match self.decide(request).await {
                Step::Done(outcome) => return outcome,
                Step::Send(eviction) => match eviction.write(self.client.clone()).await {
                    Ok(()) => {
                        return Outcome::Denied(Denial::Triggered { namespace: eviction.namespace, vm: eviction.vm });
                    }
                    Err(WriteError::Conflict(problem)) => debug!(target: "lab", "eviction webhook: {problem}"),
                    Err(WriteError::Failed(problem)) => return Outcome::Denied(Denial::NotRecorded(problem)),
                },
            }
        }
    }

    async fn decide(&self, request: &AdmissionRequest) -> Step {
        let is_exempt = request.operation == Operation::Deletion && self.exempt_users.contains(&request.user);
        let pod = match &request.deleted_pod {
            Some(pod) => Ok(Some(Pod::clone(pod))),
            None if is_exempt || request.operation == Operation::Other || request.pod.is_empty() => Ok(None),
            None => {
                let pods: Api<Pod> = Api::namespaced(self.client.clone(), &request.namespace);
                pods.get_opt(&request.pod).await.map_err(|error| error.to_string())
            }
        };
        let vm_name = pod.as_ref().ok().and_then(Option::as_ref).and_then(vm_of).filter(|_| !is_exempt);
        let (vm, is_namespace_ending, cool_down) = match vm_name {
            // This saves a call: a pod in a namespace that ends is deleted a moment later.
            Some(name) if request.operation == Operation::Eviction => {
                let cool_down = migration_aware::cool_down(&self.client, request, &self.migration_aware);
                let (vm, cool_down) = join(self.vm(&request.namespace, name), cool_down).await;
                (vm, Ok(false), cool_down)
            }
            Some(name) => {
                let is_ending = self.is_ending(&request.namespace);
                let (vm, is_ending) = join(self.vm(&request.namespace, name), is_ending).await;
                (vm, is_ending, None)
            }
            None => (Ok(None), Ok(false), None),
        };
        let source =
            vm.as_ref().ok().and_then(Option::as_ref).and_then(|vm| vm.annotations().get(EVICTION_SOURCE).cloned());
        let vm = vm.map(|vm| vm.as_ref().map(Vm::of));
        decide(&Input {
            request,
            pod: pod.as_ref().map(Option::as_ref).map_err(String::as_str),
            vm: vm.as_ref().map(Option::as_ref).map_err(String::as_str),
            source: source.as_deref(),
            is_namespace_ending: is_namespace_ending.as_ref().map(|is| *is).map_err(String::as_str),
            exempt_users: &self.exempt_users,
            cool_down,
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
