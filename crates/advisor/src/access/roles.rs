//! The roles of the operator, from its own needs and those of the profiles, and the roles for people.

use api::names::ADVISOR_GROUP;

use super::{Access, Rule, grants};
use crate::{Profile, admission, kind, profiles::PROFILES};

/// Where the operator runs: the namespace of OpenShift Virtualization.
pub const NAMESPACE: &str = "openshift-cnv";

/// The service account of the operator. `config/default` adds a prefix to it, as to all names here.
pub const SERVICE_ACCOUNT: &str = "controller-manager";

/// The lease of the active operator, in the operator's namespace.
pub const LEASE: &str = "virt-advisor-operator";

/// The namespace of events about cluster-scoped objects.
const EVENTS_NAMESPACE: &str = "default";

const CONFIGS: &str = "virtplatformconfigs";
const CONFIGS_STATUS: &str = "virtplatformconfigs/status";
const RECORDS: &str = "virtplatformplanrecords";
const RECORDS_STATUS: &str = "virtplatformplanrecords/status";

/// A ClusterRole or, with a namespace, a Role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    pub namespace: Option<&'static str>,
    /// Which of the cluster's roles `view`, `edit` and `admin` include it.
    pub part_of: &'static [&'static str],
    pub rules: Vec<Rule>,
}

impl Role {
    /// Whether somebody who has this role everywhere, or in its namespace, may make a request.
    pub fn allows(&self, verb: &str, group: &str, resource: &str, namespace: Option<&str>, name: Option<&str>) -> bool {
        let reaches = self.namespace.is_none() || self.namespace == namespace;
        reaches && self.rules.iter().any(|rule| rule.allows(verb, group, resource, name))
    }
}

/// The roles that the operator needs for all profiles.
pub fn operator() -> Vec<Role> {
    operator_with(PROFILES)
}

/// The roles that the operator needs for these profiles.
pub(super) fn operator_with(profiles: &[&dyn Profile]) -> Vec<Role> {
    // Any plan may depend on which kinds and versions are served.
    let itself = ("the operator itself", vec![Access::List(&kind::CUSTOM_RESOURCE_DEFINITION)]);
    let of_profiles = profiles.iter().map(|profile| (profile.about().name, profile.access()));
    let declared: Vec<_> = [itself].into_iter().chain(of_profiles).collect();
    let granted = grants(&declared);
    let roles = [
        Role {
            name: "manager-role",
            about: "What the operator does anywhere.",
            namespace: None,
            part_of: &[],
            rules: configurations().into_iter().chain(granted.cluster).collect(),
        },
        Role {
            name: "manager-role",
            about: "What the operator does in its own namespace.",
            namespace: Some(NAMESPACE),
            part_of: &[],
            rules: granted.own,
        },
        Role {
            name: "leader-election-role",
            about: "One operator is active at a time.",
            namespace: Some(NAMESPACE),
            part_of: &[],
            rules: election(),
        },
        Role {
            name: "event-role",
            about: "Events about objects that are in no namespace are in this one.",
            namespace: Some(EVENTS_NAMESPACE),
            part_of: &[],
            rules: vec![rule(
                "What the operator did, for `kubectl describe`.",
                "events.k8s.io",
                "events",
                &[],
                &["create"],
            )],
        },
    ];
    roles.into_iter().filter(|role| !role.rules.is_empty()).collect()
}

fn configurations() -> Vec<Rule> {
    vec![
        rule(
            "Configurations; the operator creates those that it offers, and keeps their descriptions up to date.",
            ADVISOR_GROUP,
            CONFIGS,
            &[],
            &["create", "get", "list", "patch", "watch"],
        ),
        rule(
            "Their plans and progress; what is wrong with one that cannot be read is patched in.",
            ADVISOR_GROUP,
            CONFIGS_STATUS,
            &[],
            &["patch", "update"],
        ),
        rule(
            "Records of applied plans: one is created before a plan changes anything, and old ones are deleted.",
            ADVISOR_GROUP,
            RECORDS,
            &[],
            &["create", "delete", "get", "list"],
        ),
        rule("How a recorded plan ended.", ADVISOR_GROUP, RECORDS_STATUS, &[], &["patch"]),
    ]
}

fn election() -> Vec<Rule> {
    let (group, leases) = ("coordination.k8s.io", "leases");
    vec![
        rule("A POST has no name that it could be bound to.", group, leases, &[], &["create"]),
        rule("The operator's own lease.", group, leases, &[LEASE], &["get", "update"]),
    ]
}

/// The role of an operator that keeps the approval policy. `config/approval-policy` adds it, to what has its prefix already.
pub fn policy_manager() -> Role {
    let names = &[admission::APPROVAL, admission::STATUS];
    let verbs = &["create", "delete", "get", "list", "patch", "update", "watch"];
    let kept = |resource| rule("", "admissionregistration.k8s.io", resource, names, verbs);
    let definition = "Policies and bindings are deleted with this definition.";
    Role {
        name: "virt-advisor-operator-approval-policy-role",
        about: "For --approval-policy: the policies of config/admission and their bindings, and no others.",
        namespace: None,
        part_of: &[],
        rules: vec![
            kept("validatingadmissionpolicies"),
            kept("validatingadmissionpolicybindings"),
            rule(definition, "apiextensions.k8s.io", "customresourcedefinitions", &[admission::DEFINITION], &["get"]),
        ],
    }
}

/// Roles that administrators bind to people. Only the operator writes a status, and nobody else writes a record.
pub fn people() -> Vec<Role> {
    let role = |name, about, part_of, verbs: &[&'static str]| Role {
        name,
        about,
        namespace: None,
        part_of,
        rules: vec![
            rule("", ADVISOR_GROUP, CONFIGS, &[], verbs),
            rule("", ADVISOR_GROUP, CONFIGS_STATUS, &[], &["get"]),
            rule("", ADVISOR_GROUP, RECORDS, &[], &["get", "list", "watch"]),
        ],
    };
    vec![
        role(
            "virtplatformconfig-viewer-role",
            "Sees configurations, their plans, and records of applied plans.",
            &["view"],
            &["get", "list", "watch"],
        ),
        role(
            "virtplatformconfig-editor-role",
            "Changes configurations, and stops or rejects plans. Approves plans, too, unless the approval policy is in effect.",
            &["edit"],
            &["create", "delete", "get", "list", "patch", "update", "watch"],
        ),
        role(
            "virtplatformconfig-approver-role",
            "Approves plans, also where the approval policy is in effect. A role with resourceNames approves those of one profile.",
            &[],
            &["approve", "get", "list", "patch", "update", "watch"],
        ),
        role(
            "virtplatformconfig-admin-role",
            "Changes configurations, approves plans, may have changes of others overwritten, and may delete all at once.",
            &["admin"],
            &["approve", "bypass", "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        ),
    ]
}

fn rule(why: &str, group: &'static str, resource: &'static str, names: &[&str], verbs: &[&'static str]) -> Rule {
    let names = names.iter().map(|&name| name.to_owned()).collect();
    Rule { why: why.to_owned(), group, resource, names, verbs: verbs.to_vec() }
}
