//! What is answered, case by case. Only the words that the descheduler counts may make it count.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::core::DynamicObject;
use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

use super::{
    certificates::{Pair, Rotation, read},
    *,
};
use crate::vm::Machine;

/// What the descheduler looks for.
const COUNTED: &str = "Eviction triggered evacuation";
const TRIGGERED: &str = r#"Eviction triggered evacuation of VMI "ns/a""#;
const IN_PROGRESS: &str = r#"Evacuation in progress: Eviction triggered evacuation of VMI "ns/a""#;

fn eviction() -> Value {
    json!({
        "uid": "1", "operation": "CREATE", "namespace": "ns", "name": "virt-launcher-a-1",
        "kind": {"group": "policy", "version": "v1", "kind": "Eviction"},
        "resource": {"group": "", "version": "v1", "resource": "pods"}, "subResource": "eviction",
        "userInfo": {"username": "jane"}, "dryRun": false,
        "object": {"metadata": {"name": "virt-launcher-a-1", "namespace": "ns"}},
    })
}

fn deletion() -> Value {
    json!({
        "uid": "2", "operation": "DELETE", "namespace": "ns", "name": "virt-launcher-a-1",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "userInfo": {"username": "jane"}, "object": null, "oldObject": pod(),
    })
}

fn pod() -> Value {
    json!({
        "metadata": {
            "name": "virt-launcher-a-1", "namespace": "ns", "uid": "p1",
            "labels": {"app": "virt-launcher", "kubevirt.io/domain": "a"},
            "finalizers": ["kubevirt.io/migration-protection"],
            "ownerReferences": [{"apiVersion": "x", "kind": "VirtualMachine", "name": "a", "uid": "v1"}],
        },
        "spec": {"nodeName": "n1", "containers": []},
        "status": {"phase": "Running"},
    })
}

fn vm() -> Value {
    json!({
        "apiVersion": "simulation.node-classifier.io/v1alpha1", "kind": "VirtualMachine",
        "metadata": {"name": "a", "namespace": "ns", "uid": "v1", "resourceVersion": "7"},
        "spec": {"resources": {"cpu": "1", "memory": "1Gi"}},
        "status": {"phase": "Running", "podName": "virt-launcher-a-1", "nodeName": "n1"},
    })
}

/// What is known, to be changed by each case.
struct Case {
    request: Value,
    pod: Result<Option<Value>, &'static str>,
    vm: Result<Option<Value>, &'static str>,
    is_namespace_ending: Result<bool, &'static str>,
    source: Option<&'static str>,
}

impl Case {
    fn new(request: Value) -> Case {
        Case { request, pod: Ok(Some(pod())), vm: Ok(Some(vm())), is_namespace_ending: Ok(false), source: None }
    }

    fn verdict(self) -> Verdict {
        let request = parse(self.request).unwrap();
        let pod = self.pod.map(|pod| pod.map(|pod| serde_json::from_value::<Pod>(pod).unwrap()));
        let vm = self.vm.map(|vm| vm.map(|vm| Machine::of(&serde_json::from_value::<DynamicObject>(vm).unwrap())));
        decide(&Scene {
            request: &request,
            pod: pod.as_ref().map(Option::as_ref).map_err(|problem| *problem),
            vm: vm.as_ref().map(Option::as_ref).map_err(|problem| *problem),
            is_namespace_ending: self.is_namespace_ending,
            source: self.source,
            passes: &["collector".to_owned()],
            now: "2026-01-02T03:04:05.678Z".parse().unwrap(),
        })
    }
}

fn parse(request: Value) -> Result<Request, Unreadable> {
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    Request::parse(review.to_string().as_bytes())
}

/// Evictions and deletions alike, unless a case says otherwise.
fn both(change: impl Fn(&mut Case)) -> [Verdict; 2] {
    [eviction(), deletion()].map(|request| {
        let mut case = Case::new(request);
        change(&mut case);
        case.verdict()
    })
}

fn both_pass(why: Pass, change: impl Fn(&mut Case)) {
    assert_eq!(both(change), [Verdict::Pass(why), Verdict::Pass(why)]);
}

fn both_refused(message: &str, change: impl Fn(&mut Case)) {
    for verdict in both(change) {
        let Verdict::Refuse(refusal) = verdict else { panic!("{verdict:?}") };
        assert_eq!(refusal.message(), message);
    }
}

fn edit(value: &mut Result<Option<Value>, &str>, path: &str, new: Value) {
    let value = value.as_mut().unwrap().as_mut().unwrap();
    let (parent, field) = path.rsplit_once('/').unwrap();
    value.pointer_mut(parent).unwrap()[field] = new;
}

#[test]
fn a_running_vm_is_marked_with_the_node_to_leave_and_the_version_that_was_seen() {
    for verdict in both(|_| {}) {
        let Verdict::Evacuate(mark) = verdict else { panic!("{verdict:?}") };
        assert_eq!((&*mark.namespace, &*mark.vm, &*mark.node), ("ns", "a", "n1"));
        assert_eq!((&*mark.uid, mark.version), ("v1", 7));
        assert_eq!(Refusal::Triggered { namespace: mark.namespace, vm: mark.vm }.message(), TRIGGERED);
    }
}

#[test]
fn a_mark_tells_who_asked_how_and_why() {
    let mark = |request: Value, source| {
        let mut case = Case { source, ..Case::new(request) };
        let stale = json!({"type": EVICTION_REQUESTED, "status": "True", "reason": "Old", "message": "",
            "lastTransitionTime": "2025-01-01T00:00:00Z"});
        let other = json!({"type": "Ready", "status": "True", "reason": "Running", "message": "",
            "lastTransitionTime": "2025-01-01T00:00:00Z"});
        edit(&mut case.vm, "/status/conditions", json!([stale, other]));
        match case.verdict() {
            Verdict::Evacuate(mark) => mark,
            other => panic!("{other:?}"),
        }
    };
    let cause = |mark: &Mark| {
        let types: Vec<&str> = mark.conditions.iter().map(|condition| &*condition.type_).collect();
        assert_eq!(types, ["Ready", EVICTION_REQUESTED]);
        let condition = &mark.conditions[1];
        assert_eq!(condition.last_transition_time.0.to_string(), "2026-01-02T03:04:05Z");
        (condition.reason.clone(), condition.message.clone())
    };
    let by_hand = mark(deletion(), None);
    assert_eq!(cause(&by_hand), ("Deletion".into(), "deletion of pod virt-launcher-a-1 by jane".into()));
    assert_eq!(by_hand.source, None, "there is nothing to change");
    assert_eq!(cause(&mark(eviction(), None)).0, "Eviction");
    assert_eq!(mark(eviction(), Some("descheduler")).source, Some(None), "not the descheduler this time");

    let mut request = eviction();
    request["object"]["metadata"]["annotations"] =
        json!({"requested-by": "sigs.k8s.io/descheduler", "reason": "triggered by p/s: over"});
    let message = "eviction of pod virt-launcher-a-1 by jane for sigs.k8s.io/descheduler: triggered by p/s: over";
    let by_descheduler = mark(request.clone(), None);
    assert_eq!(cause(&by_descheduler), ("Descheduler".into(), message.into()));
    assert_eq!(by_descheduler.source, Some(Some("descheduler")));
    assert_eq!(mark(request.clone(), Some("descheduler")).source, None);

    request["object"]["metadata"]["annotations"] = json!({"requested-by": "me", "reason": "\u{f6}".repeat(5000)});
    assert_eq!(cause(&mark(request, None)).1.chars().count(), 1024);
}

/// L34: a repeated eviction marked the VM again and was answered like the first.
#[test]
fn a_vm_that_is_moving_already_is_said_to() {
    both_refused(IN_PROGRESS, |case| edit(&mut case.vm, "/status/evacuationNodeName", json!("n1")));
}

#[test]
fn a_mark_for_a_node_that_the_vm_is_not_on_is_replaced() {
    for verdict in both(|case| edit(&mut case.vm, "/status/evacuationNodeName", json!("n9"))) {
        assert!(matches!(&verdict, Verdict::Evacuate(mark) if mark.node == "n1"), "{verdict:?}");
    }
}

/// L31: dry-run evictions start migrations.
#[test]
fn a_dry_run_is_answered_like_the_real_thing_and_marks_nothing() {
    both_refused(TRIGGERED, |case| case.request["dryRun"] = json!(true));
    let mut by_options = Case::new(eviction());
    by_options.request["object"]["deleteOptions"] = json!({"dryRun": ["All"]});
    assert!(matches!(by_options.verdict(), Verdict::Refuse(Refusal::Triggered { .. })));
}

/// L30: the branch for evictions asked for a resource `pods/eviction`, which there is not.
#[test]
fn an_eviction_is_known_by_its_subresource() {
    assert_eq!(parse(eviction()).unwrap().deed, Deed::Eviction);
    assert_eq!(parse(deletion()).unwrap().deed, Deed::Deletion);
    for (field, value) in [
        ("operation", json!("UPDATE")),
        ("subResource", json!("binding")),
        ("resource", json!({"group": "", "resource": "nodes"})),
        ("resource", json!({"group": "apps", "resource": "pods"})),
    ] {
        let mut request = eviction();
        request[field] = value;
        let verdict = Case::new(request).verdict();
        assert_eq!(verdict, Verdict::Pass(Pass::NotConcerned));
    }
}

/// L20: the pod of a VM that was deleted could not be deleted.
#[test]
fn the_pod_of_a_vm_that_is_gone_passes() {
    both_pass(Pass::VmGone, |case| case.vm = Ok(None));
    both_pass(Pass::VmGone, |case| edit(&mut case.vm, "/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")));
    both_pass(Pass::VmGone, |case| edit(&mut case.vm, "/metadata/uid", json!("another of that name")));
}

/// L21: the cleanup of a failed target was refused by the lab's own webhook.
#[test]
fn what_the_vm_controller_has_let_go_passes() {
    both_pass(Pass::LetGo, |case| edit(&mut case.pod, "/metadata/finalizers", json!(["of.others/one"])));
}

#[test]
fn whoever_collects_what_is_left_may_delete_but_not_evict() {
    let by_collector = |mut request: Value| {
        request["userInfo"]["username"] = json!("collector");
        let mut case = Case::new(request);
        case.vm = Err("no answer");
        case.verdict()
    };
    assert_eq!(by_collector(deletion()), Verdict::Pass(Pass::Authorized));
    assert!(matches!(by_collector(eviction()), Verdict::Refuse(Refusal::VmUnknown(_))));
}

#[test]
fn what_no_vm_runs_in_passes() {
    both_pass(Pass::NoSuchPod, |case| case.pod = Ok(None));
    both_pass(Pass::NoLauncher, |case| edit(&mut case.pod, "/metadata/labels", json!({"app": "web"})));
    both_pass(Pass::NoLauncher, |case| edit(&mut case.pod, "/metadata/labels", json!({"app": "virt-launcher"})));
    both_pass(Pass::Finished, |case| edit(&mut case.pod, "/status/phase", json!("Succeeded")));
    both_pass(Pass::Finished, |case| edit(&mut case.pod, "/status/phase", json!("Failed")));
    both_pass(Pass::Leaving, |case| edit(&mut case.pod, "/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")));
    both_pass(Pass::VmStopped, |case| edit(&mut case.vm, "/spec/running", json!(false)));
    both_pass(Pass::Unscheduled, |case| edit(&mut case.pod, "/spec/nodeName", json!(null)));
    both_pass(Pass::Surplus, |case| edit(&mut case.vm, "/status/podName", json!("virt-launcher-a-2")));
    both_pass(Pass::NamespaceEnds, |case| {
        case.is_namespace_ending = Ok(true);
        case.vm = Err("no answer");
    });
}

/// L28: the test for the target was inverted as soon as the VM told its new node.
#[test]
fn the_target_of_a_migration_is_refused_and_not_counted() {
    both_refused("Eviction request for target Pod", |case| {
        edit(&mut case.vm, "/status/podName", json!("virt-launcher-a-0"));
        edit(&mut case.vm, "/status/evacuationNodeName", json!("n1"));
        let annotations = json!({"simulation.node-classifier.io/migration-source": "virt-launcher-a-0"});
        edit(&mut case.pod, "/metadata/annotations", annotations);
    });
}

#[test]
fn a_pod_that_was_a_target_once_is_moved_like_any_other() {
    for verdict in both(|case| {
        let annotations = json!({"simulation.node-classifier.io/migration-source": "virt-launcher-a-0"});
        edit(&mut case.pod, "/metadata/annotations", annotations);
    }) {
        assert!(matches!(verdict, Verdict::Evacuate(_)), "{verdict:?}");
    }
}

#[test]
fn what_cannot_be_moved_or_is_not_known_is_refused_with_the_reason() {
    both_refused("kubevirt failed getting the pod: no answer", |case| case.pod = Err("no answer"));
    both_refused("kubevirt failed getting the vmi: no answer", |case| case.vm = Err("no answer"));
    both_refused("kubevirt failed getting the namespace: no answer", |case| {
        case.is_namespace_ending = Err("no answer");
    });
    both_refused(r#"VMI "ns/a" does not tell yet which pod it runs as; try again later"#, |case| {
        edit(&mut case.vm, "/status", json!({}));
    });
    for verdict in both(|case| edit(&mut case.vm, "/spec/resources/memory", json!("much"))) {
        let Verdict::Refuse(refusal) = verdict else { panic!("{verdict:?}") };
        let start = "VMI a is configured with an eviction strategy but is not live-migratable: ";
        assert!(refusal.message().starts_with(start), "{}", refusal.message());
    }
}

#[test]
fn only_a_vm_that_moves_is_counted() {
    let vm = || ("ns".to_owned(), "a".to_owned());
    for refusal in [
        Refusal::Target,
        Refusal::Unmovable { vm: "a".into(), problem: "p".into() },
        Refusal::Starting { namespace: vm().0, vm: vm().1 },
        Refusal::PodUnknown("p".into()),
        Refusal::VmUnknown("p".into()),
        Refusal::NamespaceUnknown("p".into()),
        Refusal::NotMarked("p".into()),
    ] {
        assert!(!refusal.message().contains(COUNTED), "{refusal:?}");
    }
    assert!(Refusal::Triggered { namespace: vm().0, vm: vm().1 }.message().contains(COUNTED));
    assert!(Refusal::InProgress { namespace: vm().0, vm: vm().1 }.message().contains(COUNTED));
}

/// L32: a malformed review was answered with a page of HTML.
#[test]
fn what_is_no_review_is_not_read_as_one() {
    let review = |request: Value| {
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string()
    };
    for body in [
        String::new(),
        "<html>".into(),
        "null".into(),
        "[]".into(),
        "{}".into(),
        "{\"request\":".into(),
        review(json!(null)),
        review(json!({})),
        review(json!({"uid": 5})),
        review(json!({"uid": "1", "userInfo": "jane"})),
        json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": eviction()}).to_string(),
    ] {
        let problem = Request::parse(body.as_bytes()).unwrap_err().to_string();
        assert!(problem.starts_with("this is no AdmissionReview of admission.k8s.io/v1: "), "{body}: {problem}");
    }
}

#[test]
fn a_request_that_leaves_out_what_it_may_is_read() {
    let request = parse(json!({"uid": "1"})).unwrap();
    assert_eq!(request.deed, Deed::Other);
    // As for each pod when all are deleted at once.
    let mut unnamed = deletion();
    unnamed["name"] = json!("");
    assert_eq!(parse(unnamed).unwrap().pod, "virt-launcher-a-1");
    let mut broken = deletion();
    broken["oldObject"] = json!({"metadata": "broken"});
    assert_eq!(parse(broken).unwrap().found, None);
}

#[test]
fn answers_have_the_form_that_the_api_server_wants() {
    let request = parse(eviction()).unwrap();
    assert_eq!(
        request.answer(Some("no")),
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
            "uid": "1", "allowed": false,
            "status": {"status": "Failure", "code": 429, "reason": "TooManyRequests", "message": "no"},
        }})
    );
    assert_eq!(request.answer(None)["response"], json!({"uid": "1", "allowed": true}));
}

#[test]
fn a_certificate_is_trusted_for_a_turn_before_it_is_used_and_for_one_after() {
    let mut rotation = Rotation::start(vec!["127.0.0.1".into()], Timestamp::now(), Duration::from_secs(90)).unwrap();
    assert_eq!(rotation.turn_length(), Duration::from_secs(30));
    let parts = |rotation: &Rotation| -> Vec<String> {
        rotation.authorities().split_inclusive("-----END CERTIFICATE-----").map(|part| part.trim().to_owned()).collect()
    };
    let before = parts(&rotation);
    rotation.turn(Timestamp::now()).unwrap();
    let after = parts(&rotation);
    assert_eq!(before[1], after[0], "what comes into use was trusted before");
    assert!(!before.contains(&after[1]));
}

#[test]
fn files_that_do_not_go_together_are_refused_with_a_reason() {
    let pair = |name: &str| {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    };
    let ((certificate, key), (_, other_key)) = (pair("a"), pair("b"));
    assert!(read(certificate.as_bytes(), key.as_bytes()).is_ok());
    for (certificate, key) in [(&*certificate, &*other_key), ("", &*key), (&*certificate, ""), ("x", "y")] {
        let problem = read(certificate.as_bytes(), key.as_bytes()).unwrap_err().to_string();
        assert!(problem.starts_with("the certificate and its key cannot be used: "), "{problem}");
    }
    assert!(Pair::make(&["not\u{e4}scii".into()], Timestamp::now(), Duration::from_secs(1)).is_err());
}

/// L35: every eviction in the cluster went through the webhook, and failed when it was down.
#[test]
fn the_api_server_asks_about_virt_launchers_only() {
    let passes = ["it's me".to_owned()];
    let service = Reach::Service { namespace: "monitoring".into(), name: "eviction-webhook".into() };
    let object = serde_json::to_value(configuration(&service, 1, None, &passes)).unwrap();
    let [evictions, deletions] = &object["webhooks"].as_array().unwrap()[..] else { panic!("{object}") };
    for webhook in [evictions, deletions] {
        assert_eq!(webhook["failurePolicy"], "Fail");
        assert_eq!(webhook["sideEffects"], "NoneOnDryRun");
        assert_eq!(webhook["timeoutSeconds"], 10);
        assert_eq!(webhook["clientConfig"]["service"]["path"], "/validate");
        assert!(webhook["clientConfig"].get("caBundle").is_none(), "left to others");
        let selector = &webhook["namespaceSelector"]["matchExpressions"][0];
        assert_eq!(selector["values"], json!(["kube-node-lease", "kube-public", "kube-system"]));
    }
    assert_eq!(evictions["rules"][0]["resources"], json!(["pods/eviction"]));
    assert_eq!(evictions["matchConditions"][0]["expression"], "object.metadata.name.startsWith('virt-launcher-')");
    assert_eq!(deletions["rules"][0]["operations"], json!(["DELETE"]));
    assert_eq!(deletions["objectSelector"]["matchLabels"], json!({"app": "virt-launcher"}));
    assert_eq!(deletions["matchConditions"][3]["expression"], r"!(request.userInfo.username in ['it\'s me'])");

    let host = configuration(&Reach::Host("::1".into()), 8443, Some("PEM"), &[]);
    let config = &host.webhooks.unwrap()[0].client_config;
    assert_eq!(config.url.as_deref(), Some("https://[::1]:8443/validate"));
    assert_eq!(config.ca_bundle.as_ref().unwrap().0, b"PEM");
}

proptest! {
    /// A VM that keeps its node is marked by nothing but an eviction or a deletion of the pod that it runs as.
    #[test]
    fn whatever_is_known_only_the_pod_that_counts_is_evacuated(
        is_deletion: bool,
        is_dry_run: bool,
        is_namespace_ending: bool,
        named in select(vec![json!(null), json!("virt-launcher-a-1"), json!("virt-launcher-a-0")]),
        source in select(vec![json!(null), json!("virt-launcher-a-0")]),
        marked in select(vec![json!(null), json!("n1"), json!("n2")]),
        node in select(vec![json!(null), json!("n1")]),
        phase in select(vec!["Pending", "Running", "Failed"]),
        finalizers in select(vec![json!(null), json!(["kubevirt.io/migration-protection"])]),
        running: bool,
        owner in select(vec!["v1", "v0"]),
    ) {
        let mut case = Case::new(if is_deletion { deletion() } else { eviction() });
        case.request["dryRun"] = json!(is_dry_run);
        case.is_namespace_ending = Ok(is_namespace_ending);
        edit(&mut case.pod, "/metadata/annotations", json!({"simulation.node-classifier.io/migration-source": source}));
        if source.is_null() {
            edit(&mut case.pod, "/metadata/annotations", json!(null));
        }
        edit(&mut case.pod, "/spec/nodeName", node.clone());
        edit(&mut case.pod, "/status/phase", json!(phase));
        edit(&mut case.pod, "/metadata/finalizers", finalizers.clone());
        edit(&mut case.pod, "/metadata/ownerReferences/0/uid", json!(owner));
        edit(&mut case.vm, "/status/podName", named.clone());
        edit(&mut case.vm, "/status/evacuationNodeName", marked.clone());
        edit(&mut case.vm, "/spec/running", json!(running));
        let counts = named == "virt-launcher-a-1" && node == "n1" && phase != "Failed" && !finalizers.is_null()
            && running && owner == "v1" && !is_namespace_ending;
        let verdict = case.verdict();
        let is_evacuated = matches!(verdict, Verdict::Evacuate(_));
        prop_assert_eq!(is_evacuated, counts && marked != "n1" && !is_dry_run, "{:?}", verdict);
        if let Verdict::Refuse(refusal) = &verdict {
            let is_counted = refusal.message().contains(COUNTED);
            prop_assert_eq!(is_counted, counts, "{:?}", verdict);
        }
    }
}
