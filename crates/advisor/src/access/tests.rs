//! The operator is granted exactly what it needs.

mod files;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{roles::operator_with, *};
use crate::{
    Change, Facts, Planner, Query,
    kind::{CONFIG_MAP, HYPER_CONVERGED, KUBE_DESCHEDULER, MACHINE_CONFIG, MACHINE_CONFIG_POOL, PLAN_RECORD},
    profile::missing,
    profiles::{PROFILES, find},
    test_cluster::{TestCluster, machine_config, ours, planner, records::restoring},
};

// --- declarations and plans ---

/// A verb, a kind, a namespace, and a name; no name means all objects.
type Need = (&'static str, &'static Kind, Option<&'static str>, Option<String>);

/// All queries until the planner has everything it wants.
fn asked(cluster: &TestCluster, planner: &dyn Planner) -> (Vec<Query>, Facts) {
    let (mut facts, mut asked) = (Facts::default(), Vec::new());
    loop {
        let queries = facts.unanswered(planner.wants(&facts));
        if queries.is_empty() {
            return (asked, facts);
        }
        for query in queries {
            facts.insert(query.clone(), cluster.answer(&query));
            asked.push(query);
        }
    }
}

/// The rights that the operator needs for a profile: to read and watch what the plan depends on, and to change its targets.
fn needed(cluster: &TestCluster, profile: &str, options: Value) -> Vec<Need> {
    let mut needs = needed_by(cluster, planner(profile, options.clone()).as_ref());
    // Everything can be taken back, but for the object of the example.
    let plan = cluster.plan(profile, options);
    if profile != "example-profile" && !plan.items.is_empty() {
        let mut cluster = cluster.clone();
        cluster.apply_recorded(&plan, 1);
        needs.extend(needed_by(&cluster, restoring(profile, "original").as_ref()));
    }
    needs
}

fn needed_by(cluster: &TestCluster, planner: &dyn Planner) -> Vec<Need> {
    let (queries, facts) = asked(cluster, planner);
    let mut needs: Vec<Need> = Vec::new();
    let on = |object: &ObjectRef, verbs: &[&'static str]| -> Vec<Need> {
        verbs.iter().map(|&verb| (verb, object.kind, object.namespace, Some(object.name.clone()))).collect()
    };
    for query in queries {
        match query {
            // The operator itself has rights on its records.
            Query::List(kind) if *kind == PLAN_RECORD => {}
            Query::List(kind) => needs.extend(["list", "watch"].map(|verb| (verb, kind, None, None))),
            // The names are only known in the cluster. Rendered configs never change, so they are not watched.
            Query::Object(object) if object.name.starts_with("rendered-") => {
                needs.push(("get", object.kind, None, None))
            }
            // Configs of others cannot be named in advance either. They are read again from time to time.
            Query::Optional(object) if object.kind == &crate::kind::CLUSTER_VERSION => {
                needs.extend(on(&object, &["get"]))
            }
            Query::Optional(object) if object.kind == &crate::kind::MACHINE_CONFIG => {
                needs.push(("get", object.kind, None, None))
            }
            Query::Object(object) | Query::Optional(object) => needs.extend(on(&object, &["get", "list", "watch"])),
        }
    }
    if missing(&planner.requirements(&facts), &facts).is_some() {
        return needs;
    }
    for intent in planner.plan(&facts).intents {
        let verbs: &[_] = match intent.change {
            Change::Delete => &["delete", "get", "list", "watch"],
            Change::Apply { .. } if facts.object(&intent.target).is_none() => {
                &["create", "get", "list", "patch", "watch"]
            }
            Change::Apply { .. } => &["get", "list", "patch", "watch"],
        };
        needs.extend(on(&intent.target, verbs));
    }
    needs
}

fn hyper_converged(namespace: &str) -> Value {
    json!({
        "apiVersion": "hco.kubevirt.io/v1beta1",
        "kind": "HyperConverged",
        "metadata": {"name": "kubevirt-hyperconverged", "namespace": namespace},
        "spec": {},
    })
}

/// Clusters and options that together cover everything a profile does.
fn cases(profile: &str) -> Vec<(TestCluster, Value)> {
    let cluster = || TestCluster::with_descheduler("5.1");
    let upstream = || cluster().with(hyper_converged("kubevirt-hyperconverged"));
    let own = || cluster().with(hyper_converged("openshift-cnv"));
    let operator = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "descheduler-operator", "namespace": "openshift-kube-descheduler-operator"},
    });
    match profile {
        "load-aware-rebalancing" => vec![
            (TestCluster::empty(), Value::Null),
            (upstream().with(operator), Value::Null),
            (
                own().with(ours(machine_config("99-worker-psi-karg", json!({"kernelArguments": ["psi=1"]})))),
                json!({"loadAware": {"enablePSIMetrics": false}}),
            ),
        ],
        "virt-higher-density" => vec![
            (TestCluster::empty(), Value::Null),
            (upstream(), Value::Null),
            (upstream().with(machine_config("rendered-worker", json!({}))), Value::Null),
            (
                own().with(ours(machine_config("90-worker-kubelet-swap", json!({"config": {}})))),
                json!({"virtHigherDensity": {"enableSwap": false}}),
            ),
        ],
        "example-profile" => vec![(TestCluster::empty(), Value::Null)],
        other => panic!("bring out what {other} does"),
    }
}

/// W36 (scattered profile code): roles follow from what a profile declares.
#[test]
fn every_profile_declares_what_its_plans_need_and_nothing_else() {
    let spoken = |(verb, kind, namespace, name): &Need| {
        format!("{verb} {} {} {}", kind.plural, namespace.unwrap_or_default(), name.as_deref().unwrap_or("all"))
    };
    for profile in PROFILES {
        let name = profile.about().name;
        let needs: BTreeSet<String> = cases(name)
            .iter()
            .flat_map(|(cluster, options)| needed(cluster, name, options.clone()))
            .map(|need| spoken(&need))
            .collect();
        let declare = |access: &Access| -> Vec<String> {
            let (namespace, object) = (access.object().and_then(|object| object.namespace), access.object());
            let object = object.map(|object| object.name.clone());
            access.verbs().iter().map(|verb| spoken(&(verb, access.kind(), namespace, object.clone()))).collect()
        };
        let declared: BTreeSet<String> = profile.access().iter().flat_map(declare).collect();
        assert_eq!(declared, needs, "{name}");
    }
}

#[test]
fn every_profile_is_granted_what_its_plans_need() {
    for profile in PROFILES {
        let name = profile.about().name;
        let roles = operator_with(&[find(name).unwrap()]);
        for (verb, kind, namespace, object) in
            cases(name).iter().flat_map(|(cluster, options)| needed(cluster, name, options.clone()))
        {
            let allowed =
                roles.iter().any(|role| role.allows(verb, kind.group, kind.plural, namespace, object.as_deref()));
            assert!(allowed, "{name} may not {verb} {} {namespace:?} {object:?}", kind.plural);
        }
    }
}

// --- rules ---

fn spoken(rules: &[Rule]) -> Vec<String> {
    let spoken = |rule: &Rule| format!("{} {} [{}]", rule.verbs.join(","), rule.resource, rule.names.join(","));
    rules.iter().map(spoken).collect()
}

#[test]
fn objects_with_the_same_rights_share_a_rule_and_nothing_is_granted_twice() {
    let config = |name: &str| ObjectRef::cluster(&MACHINE_CONFIG, name);
    let declared = [
        ("a", vec![Access::Create(config("one")), Access::Delete(config("one")), Access::Read(config("three"))]),
        ("b", vec![Access::Create(config("two")), Access::Delete(config("two")), Access::ReadAny(&MACHINE_CONFIG)]),
    ];
    let Grants { cluster, own } = grants(&declared);
    assert_eq!(
        spoken(&cluster),
        [
            "get machineconfigs []",
            "create,delete,list,patch,watch machineconfigs [one,two]",
            "list,watch machineconfigs [three]",
        ]
    );
    assert_eq!(cluster.iter().map(|rule| rule.why.as_str()).collect::<Vec<_>>(), ["For b.", "For a and b.", "For a."]);
    assert_eq!(own, []);
}

#[test]
fn a_role_is_for_the_own_namespace_alone_because_others_may_not_be_there() {
    let in_own = |name: &str| ObjectRef::namespaced(&CONFIG_MAP, NAMESPACE, name);
    let declared = [(
        "a",
        vec![
            Access::Create(in_own("mine")),
            Access::Read(ObjectRef::namespaced(&KUBE_DESCHEDULER, "elsewhere", "cluster")),
            Access::List(&MACHINE_CONFIG_POOL),
            Access::Read(ObjectRef::namespaced(&HYPER_CONVERGED, NAMESPACE, "either")),
            Access::Read(ObjectRef::namespaced(&HYPER_CONVERGED, "elsewhere", "either")),
        ],
    )];
    let Grants { cluster, own } = grants(&declared);
    assert_eq!(
        spoken(&cluster),
        [
            "get,list,watch hyperconvergeds [either]",
            "list,watch machineconfigpools []",
            "get,list,watch kubedeschedulers [cluster]",
        ]
    );
    assert_eq!(spoken(&own), ["create,get,list,patch,watch configmaps [mine]"]);
}

#[test]
fn a_named_rule_needs_the_name_and_a_post_has_none() {
    let rule = |names: &[&str]| Rule {
        why: String::new(),
        group: "g",
        resource: "things",
        names: names.iter().map(|&name| name.to_owned()).collect(),
        verbs: vec!["create", "get"],
    };
    let (named, any) = (rule(&["mine"]), rule(&[]));
    assert!(named.allows("create", "g", "things", Some("mine")), "an apply");
    assert!(!named.allows("create", "g", "things", None), "a POST");
    assert!(!named.allows("get", "g", "things", Some("other")));
    assert!(any.allows("create", "g", "things", None) && any.allows("get", "g", "things", Some("other")));
    assert!(!any.allows("get", "g", "things/status", Some("mine")) && !any.allows("get", "", "things", None));
    assert!(!any.allows("delete", "g", "things", None));
}

#[test]
fn a_role_reaches_no_further_than_its_namespace() {
    let roles = operator();
    let may =
        |namespace| roles.iter().any(|role| role.allows("create", "events.k8s.io", "events", Some(namespace), None));
    assert!(may("default") && !may(NAMESPACE));
}

// --- least privilege ---

#[test]
fn the_operator_is_granted_no_more_than_it_should_be() {
    for role in operator() {
        for rule in &role.rules {
            let said = format!("{}: {rule:?}", role.name);
            let texts = [rule.group, rule.resource].into_iter().chain(rule.verbs.iter().copied());
            assert!(texts.chain(rule.names.iter().map(String::as_str)).all(|text| !text.contains('*')), "{said}");
            assert!(!["secrets", "pods", "nodes", "serviceaccounts"].contains(&rule.resource), "{said}");
            assert!(!["escalate", "bind", "impersonate"].iter().any(|verb| rule.verbs.contains(verb)), "{said}");
            assert!(rule.group != "rbac.authorization.k8s.io", "{said}");
        }
    }
}

/// W38 (cluster in memory), D12 (named watches only): of MachineConfigs, only those that plans name may be listed or
/// watched.
#[test]
fn what_is_not_bound_to_a_name_is_this_and_no_more() {
    let rules: Vec<Rule> = operator().into_iter().flat_map(|role| role.rules).collect();
    let (any, named): (Vec<_>, Vec<_>) = rules.into_iter().partition(|rule| rule.names.is_empty());
    assert_eq!(
        spoken(&any),
        [
            "create,get,list,patch,watch virtplatformconfigs []",
            "patch,update virtplatformconfigs/status []",
            "create,delete,get,list virtplatformplanrecords []",
            "patch virtplatformplanrecords/status []",
            "list,watch customresourcedefinitions []",
            "get machineconfigs []",
            "list,watch machineconfigpools []",
            "create leases []",
            "create events []",
        ]
    );
    assert_eq!(
        spoken(&named),
        [
            "get customresourcedefinitions [kubedeschedulers.operator.openshift.io]",
            "get,list,watch deployments [descheduler,descheduler-operator]",
            "get clusterversions [version]",
            "get,list,patch,watch hyperconvergeds [kubevirt-hyperconverged]",
            "create,delete,list,patch,watch machineconfigs [90-worker-kubelet-swap,99-worker-psi-karg]",
            "create,delete,get,list,patch,watch kubedeschedulers [cluster]",
            "get,list,watch machineconfigurations [cluster]",
            "create,get,list,patch,watch configmaps [example-config]",
            "get,update leases [virt-advisor-operator]",
        ]
    );
}

fn verbs(role: &Role, resource: &str) -> BTreeSet<&'static str> {
    role.rules.iter().filter(|rule| rule.resource == resource).flat_map(|rule| rule.verbs.clone()).collect()
}

#[test]
fn roles_for_people_build_on_each_other_and_none_writes_a_status() {
    let roles = people();
    let parts: Vec<_> = roles.iter().map(|role| role.part_of).collect();
    assert_eq!(parts, [&["view"][..], &["edit"], &[], &["admin"]], "approvers are always named");
    let [viewer, editor, approver, admin] = &roles[..] else { panic!("{roles:?}") };
    let configs = |role| verbs(role, "virtplatformconfigs");
    assert!(configs(viewer).is_subset(&configs(editor)) && configs(viewer).is_subset(&configs(approver)));
    assert!(configs(editor).is_subset(&configs(admin)) && configs(approver).is_subset(&configs(admin)));
    let has = |verb| roles.iter().map(|role| configs(role).contains(verb)).collect::<Vec<_>>();
    assert_eq!(has("approve"), [false, false, true, true]);
    assert_eq!(has("bypass"), [false, false, false, true]);
    assert!(roles.iter().all(|role| verbs(role, "virtplatformconfigs/status") == BTreeSet::from(["get"])));
}

#[test]
fn everybody_reads_records_and_nobody_writes_them() {
    for role in people() {
        let rules: Vec<&Rule> =
            role.rules.iter().filter(|rule| rule.resource.starts_with("virtplatformplanrecords")).collect();
        assert_eq!(rules.iter().map(|rule| rule.resource).collect::<Vec<_>>(), ["virtplatformplanrecords"]);
        assert_eq!(rules[0].verbs, ["get", "list", "watch"], "{}", role.name);
    }
}

#[test]
fn the_manager_of_the_approval_policy_is_granted_named_objects_only() {
    let policies = "[approval.advisor.kubevirt.io,status.advisor.kubevirt.io]";
    let all = "create,delete,get,list,patch,update,watch";
    let expected = [
        format!("{all} validatingadmissionpolicies {policies}"),
        format!("{all} validatingadmissionpolicybindings {policies}"),
        "get customresourcedefinitions [virtplatformconfigs.advisor.kubevirt.io]".to_owned(),
    ];
    assert_eq!(spoken(&policy_manager().rules), expected);
}
