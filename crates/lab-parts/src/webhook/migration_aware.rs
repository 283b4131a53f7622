//! The plugin `KubevirtMigrationAware` of OpenShift's descheduler: no eviction of a VM that migrates, nor for a cool-down afterwards.
//! The upstream descheduler does not have it, so this filter answers its evictions before the webhook does. The descheduler counts
//! such an answer as an eviction that failed, and tries the next pod.

use balance::CoolDown;
use jiff::Timestamp;
use kube::Client;
use standins::descheduler::{Spec, kube_descheduler_api, names};
use tracing::debug;

use super::{AdmissionRequest, Denial, Input, MigrationAwareSettings, Switch};
use crate::vm::Vm;

/// Evictions by others, such as a drain, pass.
pub(super) fn filter(input: &Input<'_>, vm: &Vm) -> Option<Denial> {
    let rules = input.cool_down.filter(|_| input.request.is_by_descheduler())?;
    let (namespace, name) = (vm.namespace.clone(), vm.name.clone());
    if vm.status.evacuation_node_name.is_some() {
        return Some(Denial::Migrating { namespace, vm: name });
    }
    let left = time_left(&rules, vm, input.now)?;
    Some(Denial::CoolingDown { namespace, vm: name, seconds: left.div_ceil(1000) })
}

/// How many milliseconds the VM still cools down. None if it does not.
fn time_left(rules: &CoolDown, vm: &Vm, now: Timestamp) -> Option<u64> {
    let migrations = &vm.status.migrations;
    let last = migrations.last()?;
    let took = milliseconds(last.end_timestamp.0).saturating_sub(milliseconds(last.start_timestamp.0));
    let ended: Vec<u64> = migrations.iter().map(|migration| milliseconds(migration.end_timestamp.0)).collect();
    let now = milliseconds(now);
    Some(rules.end(took, &ended, now)?.saturating_sub(now))
}

/// Since 1970.
fn milliseconds(time: Timestamp) -> u64 {
    u64::try_from(time.as_millisecond()).unwrap_or_default()
}

/// The settings of the plugin for a request, if the plugin is on. As the real one, it lets a request pass if something cannot be read.
pub(super) async fn cool_down(
    client: &Client,
    request: &AdmissionRequest,
    settings: &MigrationAwareSettings,
) -> Option<CoolDown> {
    if settings.switch == Switch::Off || !request.is_by_descheduler() {
        return None;
    }
    let spec = match kube_descheduler_api(client).get_opt(names::OBJECT).await {
        Ok(found) => found.and_then(|object| Spec::read(&object.data["spec"]).ok()),
        Err(problem) => {
            debug!(target: "lab", "eviction webhook: reading KubeDescheduler {}: {problem}", names::OBJECT);
            None
        }
    };
    in_effect(spec.as_ref(), settings)
}

pub(super) fn in_effect(spec: Option<&Spec>, settings: &MigrationAwareSettings) -> Option<CoolDown> {
    let is_on = match settings.switch {
        Switch::On => true,
        Switch::Off => false,
        Switch::Auto => spec.is_some_and(|spec| spec.has_migration_aware(settings.release)),
    };
    is_on.then(|| spec.unwrap_or(&Spec::default()).cool_down(settings.time_scale))
}
