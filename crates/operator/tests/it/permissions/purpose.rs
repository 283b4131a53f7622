//! What each permission of the operator is for.

use advisor::access::NAMESPACE;
use serde_json::{Value, json};
use testkit::{
    platform::{DENSITY, LOAD_AWARE, descheduler, hyper_converged, machine_config},
    rbac::Permission,
    rollout::{PSI, SWAP},
};

const EXAMPLE: &str = "example-profile";

/// A task of the operator that needs a permission.
#[derive(Debug, Clone)]
pub(super) enum Task {
    /// Offers the profiles and says that they are ignored.
    Offer,
    /// Updates the description of an offered profile.
    Describe,
    /// Continues a plan after a restart.
    GoOn,
    /// Writes into the status of an object that it cannot be parsed.
    Report,
    /// Makes a plan.
    Plan(&'static str),
    /// Makes a plan for nodes with an unknown rendered config.
    PlanBlindly(&'static str),
    /// Makes a plan that removes this machine config.
    Undo(&'static str, &'static str),
    /// Notices a change of this object.
    Notice(&'static str, Value),
    /// Follows a rollout.
    Follow,
    /// Takes the lease, when there is none or one that was given up.
    Lead { given_up: bool },
    /// Applies a plan with its record; `taken` if there is another record of its name.
    Record { taken: bool },
    /// Closes the record of a plan.
    Close,
    /// Deletes records that are no longer kept.
    Expire,
    /// Plans to take everything back.
    Restore,
    /// Writes events.
    Tell,
}

/// Where a missing permission is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    Condition(&'static str),
    Event(&'static str),
    /// The plan is possible without it, and notes what could not be read.
    Note(&'static str),
    /// There is no object to report it at: only the log, and the operator is not ready or not the leader.
    Log,
}

pub(super) fn example() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "example-config", "namespace": NAMESPACE},
        "data": {"somebody": "else"},
    })
}

pub(super) fn some_descheduler() -> Value {
    descheduler(json!({"managementState": "Managed", "deschedulingIntervalSeconds": 60, "profiles": ["LongLifecycle"]}))
}

/// A Deployment of the descheduler or of its operator.
pub(super) fn deployment(name: &str) -> Value {
    let labels = json!({"app": name});
    let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": name, "image": "none"}]}});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "openshift-kube-descheduler-operator"},
        "spec": {"selector": {"matchLabels": labels}, "template": pod},
    })
}

fn policy() -> Value {
    json!({
        "apiVersion": "operator.openshift.io/v1",
        "kind": "MachineConfiguration",
        "metadata": {"name": "cluster"},
        "spec": {"managementState": "Managed"},
    })
}

/// The task that needs a permission, and where its lack is reported.
pub(super) fn purpose(permission: &Permission) -> Option<(Task, Report)> {
    let of_config = |name: &str, plan: Task, undo: Task, profile: &'static str, verb: &str| match verb {
        "create" | "patch" => (plan, Report::Condition(profile)),
        "delete" => (undo, Report::Condition(profile)),
        _ => (Task::Notice(profile, machine_config(name, json!({"kernelArguments": ["a"]}))), Report::Event(profile)),
    };
    Some(match (permission.resource, permission.name.as_deref(), permission.verb) {
        ("virtplatformconfigs", None, "create" | "list" | "watch") => (Task::Offer, Report::Log),
        ("virtplatformconfigs", None, "get") => (Task::GoOn, Report::Event(LOAD_AWARE)),
        ("virtplatformconfigs", None, "patch") => (Task::Describe, Report::Event(LOAD_AWARE)),
        ("virtplatformconfigs/status", None, "update") => (Task::Offer, Report::Event(LOAD_AWARE)),
        ("virtplatformconfigs/status", None, "patch") => (Task::Report, Report::Log),
        ("virtplatformplanrecords", None, "create") => (Task::Record { taken: false }, Report::Event(LOAD_AWARE)),
        ("virtplatformplanrecords", None, "get") => (Task::Record { taken: true }, Report::Event(LOAD_AWARE)),
        ("virtplatformplanrecords", None, "delete") => (Task::Expire, Report::Log),
        ("virtplatformplanrecords/status", None, "patch") => (Task::Close, Report::Log),
        ("virtplatformplanrecords", None, "list") | ("kubedeschedulers", Some("cluster"), "delete") => {
            (Task::Restore, Report::Condition(LOAD_AWARE))
        }
        ("customresourcedefinitions", None, "list" | "watch") => {
            (Task::Notice(LOAD_AWARE, some_descheduler()), Report::Event(LOAD_AWARE))
        }
        ("customresourcedefinitions", Some("kubedeschedulers.operator.openshift.io"), "get") => {
            (Task::Plan(LOAD_AWARE), Report::Condition(LOAD_AWARE))
        }
        ("hyperconvergeds", Some("kubevirt-hyperconverged"), "get") => {
            (Task::Plan(LOAD_AWARE), Report::Condition(LOAD_AWARE))
        }
        ("hyperconvergeds", Some("kubevirt-hyperconverged"), "patch") => {
            (Task::Plan(DENSITY), Report::Condition(DENSITY))
        }
        ("hyperconvergeds", Some("kubevirt-hyperconverged"), "list" | "watch") => {
            (Task::Notice(DENSITY, hyper_converged(json!({}))), Report::Event(DENSITY))
        }
        ("machineconfigs", None, "get") => (Task::Plan(LOAD_AWARE), Report::Condition(LOAD_AWARE)),
        ("machineconfigs", Some(PSI), verb) => {
            of_config(PSI, Task::Plan(LOAD_AWARE), Task::Undo(LOAD_AWARE, PSI), LOAD_AWARE, verb)
        }
        ("machineconfigs", Some(SWAP), verb) => {
            of_config(SWAP, Task::Plan(DENSITY), Task::Undo(DENSITY, SWAP), DENSITY, verb)
        }
        ("machineconfigpools", None, "list") => (Task::Plan(LOAD_AWARE), Report::Condition(LOAD_AWARE)),
        ("machineconfigpools", None, "watch") => (Task::Follow, Report::Event(LOAD_AWARE)),
        ("kubedeschedulers", Some("cluster"), "create" | "get" | "patch") => {
            (Task::Plan(LOAD_AWARE), Report::Condition(LOAD_AWARE))
        }
        ("kubedeschedulers", Some("cluster"), "list" | "watch") => {
            (Task::Notice(LOAD_AWARE, some_descheduler()), Report::Event(LOAD_AWARE))
        }
        ("machineconfigurations", Some("cluster"), "get") => (Task::Plan(DENSITY), Report::Condition(DENSITY)),
        ("machineconfigurations", Some("cluster"), "list" | "watch") => {
            (Task::Notice(DENSITY, policy()), Report::Event(DENSITY))
        }
        ("configmaps", Some("example-config"), "create" | "get" | "patch") => {
            (Task::Plan(EXAMPLE), Report::Condition(EXAMPLE))
        }
        ("configmaps", Some("example-config"), "list" | "watch") => {
            (Task::Notice(EXAMPLE, example()), Report::Event(EXAMPLE))
        }
        ("deployments", Some("descheduler-operator"), "get") => (Task::Plan(LOAD_AWARE), Report::Note(LOAD_AWARE)),
        ("deployments", Some(name @ ("descheduler-operator" | "descheduler")), _) => {
            (Task::Notice(LOAD_AWARE, deployment(name)), Report::Log)
        }
        ("clusterversions", Some("version"), "get") => (Task::PlanBlindly(DENSITY), Report::Note(DENSITY)),
        ("leases", None, "create") => (Task::Lead { given_up: false }, Report::Log),
        ("leases", Some("virt-advisor-operator"), "get" | "update") => (Task::Lead { given_up: true }, Report::Log),
        ("events", None, "create") => (Task::Tell, Report::Log),
        _ => return None,
    })
}
