//! Requests that are allowed, denied, or recorded on the VM. Only messages about a VM that migrates may contain the words
//! that the descheduler counts.

use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

use super::case::{
    COUNTED, Case, IN_PROGRESS, TRIGGERED, allowed, both, both_allowed, both_denied, deletion, edit, eviction, parse,
};
use crate::webhook::{AllowReason, Denial, EVICTION_REQUESTED, EvictionRequest, Operation, Outcome, Step};

#[test]
fn an_eviction_request_has_the_node_to_leave_and_the_version_that_was_read() {
    for step in both(|_| {}) {
        let Step::Send(recorded) = step else { panic!("{step:?}") };
        assert_eq!((&*recorded.namespace, &*recorded.vm, &*recorded.node), ("ns", "a", "n1"));
        assert_eq!((&*recorded.uid, &*recorded.version), ("v1", "7"));
        assert_eq!(Denial::Triggered { namespace: recorded.namespace, vm: recorded.vm }.message(), TRIGGERED);
    }
}

#[test]
fn an_eviction_request_tells_who_asked_how_and_why() {
    let record = |request: Value, source| {
        let mut case = Case { source, ..Case::new(request) };
        let stale = json!({"type": EVICTION_REQUESTED, "status": "True", "reason": "Old", "message": "",
            "lastTransitionTime": "2025-01-01T00:00:00Z"});
        let other = json!({"type": "Ready", "status": "True", "reason": "Running", "message": "",
            "lastTransitionTime": "2025-01-01T00:00:00Z"});
        edit(&mut case.vm, "/status/conditions", json!([stale, other]));
        match case.step() {
            Step::Send(recorded) => recorded,
            other => panic!("{other:?}"),
        }
    };
    let cause = |recorded: &EvictionRequest| {
        let types: Vec<&str> = recorded.conditions.iter().map(|condition| &*condition.type_).collect();
        assert_eq!(types, ["Ready", EVICTION_REQUESTED]);
        let condition = &recorded.conditions[1];
        assert_eq!(condition.last_transition_time.0.to_string(), "2026-01-02T03:04:05Z");
        (condition.reason.clone(), condition.message.clone())
    };
    let by_hand = record(deletion(), None);
    assert_eq!(cause(&by_hand), ("Deletion".into(), "deletion of pod virt-launcher-a-1 by jane".into()));
    assert_eq!(by_hand.source, None, "there is nothing to change");
    assert_eq!(cause(&record(eviction(), None)).0, "Eviction");
    assert_eq!(record(eviction(), Some("descheduler")).source, Some(None), "not the descheduler this time");

    let mut request = eviction();
    request["object"]["metadata"]["annotations"] =
        json!({"requested-by": "sigs.k8s.io/descheduler", "reason": "triggered by p/s: over"});
    let message = "eviction of pod virt-launcher-a-1 by jane for sigs.k8s.io/descheduler: triggered by p/s: over";
    let by_descheduler = record(request.clone(), None);
    assert_eq!(cause(&by_descheduler), ("Descheduler".into(), message.into()));
    assert_eq!(by_descheduler.source, Some(Some("descheduler")));
    assert_eq!(record(request.clone(), Some("descheduler")).source, None);

    request["object"]["metadata"]["annotations"] = json!({"requested-by": "me", "reason": "\u{f6}".repeat(5000)});
    assert_eq!(cause(&record(request, None)).1.chars().count(), 1024);
}

/// L34 (repeated eviction): a repeated eviction was recorded again and was answered like the first.
#[test]
fn a_vm_that_migrates_already_is_reported_as_such() {
    both_denied(IN_PROGRESS, |case| edit(&mut case.vm, "/status/evacuationNodeName", json!("n1")));
}

#[test]
fn an_eviction_request_for_a_node_that_the_vm_is_not_on_is_replaced() {
    for step in both(|case| edit(&mut case.vm, "/status/evacuationNodeName", json!("n9"))) {
        assert!(matches!(&step, Step::Send(recorded) if recorded.node == "n1"), "{step:?}");
    }
}

/// L31 (dry run migrates): evictions with dry run started migrations.
#[test]
fn a_dry_run_is_denied_with_the_same_message_and_records_nothing() {
    both_denied(TRIGGERED, |case| case.request["dryRun"] = json!(true));
    let mut by_options = Case::new(eviction());
    by_options.request["object"]["deleteOptions"] = json!({"dryRun": ["All"]});
    assert!(matches!(by_options.step(), Step::Done(Outcome::Denied(Denial::Triggered { .. }))));
}

/// L30 (webhook never called): the branch for evictions compared with the resource `pods/eviction`, which does not exist.
#[test]
fn an_eviction_is_known_by_its_subresource() {
    assert_eq!(parse(eviction()).unwrap().operation, Operation::Eviction);
    assert_eq!(parse(deletion()).unwrap().operation, Operation::Deletion);
    for (field, value) in [
        ("operation", json!("UPDATE")),
        ("subResource", json!("binding")),
        ("resource", json!({"group": "", "resource": "nodes"})),
        ("resource", json!({"group": "apps", "resource": "pods"})),
    ] {
        let mut request = eviction();
        request[field] = value;
        let step = Case::new(request).step();
        assert_eq!(step, allowed(AllowReason::NotConcerned));
    }
}

/// L20 (undeletable pod): the pod of a VM that was deleted could not be deleted.
#[test]
fn the_pod_of_a_vm_that_is_gone_is_allowed() {
    both_allowed(AllowReason::VmGone, |case| case.vm = Ok(None));
    both_allowed(AllowReason::VmGone, |case| {
        edit(&mut case.vm, "/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"))
    });
    both_allowed(AllowReason::VmGone, |case| edit(&mut case.vm, "/metadata/uid", json!("another of that name")));
}

/// L21 (leftover target): the cleanup of a failed target was refused by the lab's own webhook.
#[test]
fn a_pod_without_our_finalizer_is_allowed() {
    both_allowed(AllowReason::Unprotected, |case| {
        edit(&mut case.pod, "/metadata/finalizers", json!(["of.others/one"]))
    });
}

#[test]
fn a_garbage_collector_may_delete_but_not_evict() {
    let by_collector = |mut request: Value| {
        request["userInfo"]["username"] = json!("collector");
        let mut case = Case::new(request);
        case.vm = Err("no answer");
        case.step()
    };
    assert_eq!(by_collector(deletion()), allowed(AllowReason::ExemptUser));
    assert!(matches!(by_collector(eviction()), Step::Done(Outcome::Denied(Denial::VmUnknown(_)))));
}

#[test]
fn a_pod_that_runs_no_vm_is_allowed() {
    both_allowed(AllowReason::NoSuchPod, |case| case.pod = Ok(None));
    both_allowed(AllowReason::NotLauncher, |case| edit(&mut case.pod, "/metadata/labels", json!({"app": "web"})));
    both_allowed(AllowReason::NotLauncher, |case| {
        edit(&mut case.pod, "/metadata/labels", json!({"app": "virt-launcher"}))
    });
    both_allowed(AllowReason::Finished, |case| edit(&mut case.pod, "/status/phase", json!("Succeeded")));
    both_allowed(AllowReason::Finished, |case| edit(&mut case.pod, "/status/phase", json!("Failed")));
    both_allowed(AllowReason::BeingDeleted, |case| {
        edit(&mut case.pod, "/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"))
    });
    both_allowed(AllowReason::VmStopped, |case| edit(&mut case.vm, "/spec/running", json!(false)));
    both_allowed(AllowReason::Unscheduled, |case| edit(&mut case.pod, "/spec/nodeName", json!(null)));
    both_allowed(AllowReason::Surplus, |case| edit(&mut case.vm, "/status/podName", json!("virt-launcher-a-2")));
    both_allowed(AllowReason::NamespaceEnding, |case| {
        case.is_namespace_ending = Ok(true);
        case.vm = Err("no answer");
    });
}

/// L28 (target as source): the check for the target was wrong as soon as the status of the VM named the new node.
#[test]
fn the_target_of_a_migration_is_denied_and_not_counted() {
    both_denied("Eviction request for target Pod", |case| {
        edit(&mut case.vm, "/status/podName", json!("virt-launcher-a-0"));
        edit(&mut case.vm, "/status/evacuationNodeName", json!("n1"));
        let annotations = json!({"simulation.node-classifier.io/migration-source": "virt-launcher-a-0"});
        edit(&mut case.pod, "/metadata/annotations", annotations);
    });
}

#[test]
fn a_pod_that_was_a_target_once_migrates_like_any_other() {
    for step in both(|case| {
        let annotations = json!({"simulation.node-classifier.io/migration-source": "virt-launcher-a-0"});
        edit(&mut case.pod, "/metadata/annotations", annotations);
    }) {
        assert!(matches!(step, Step::Send(_)), "{step:?}");
    }
}

#[test]
fn what_cannot_migrate_or_cannot_be_read_is_denied_with_the_reason() {
    both_denied("kubevirt failed getting the pod: no answer", |case| case.pod = Err("no answer"));
    both_denied("kubevirt failed getting the vmi: no answer", |case| case.vm = Err("no answer"));
    both_denied("kubevirt failed getting the namespace: no answer", |case| {
        case.is_namespace_ending = Err("no answer");
    });
    both_denied(r#"VMI "ns/a" does not tell yet which pod it runs as; try again later"#, |case| {
        edit(&mut case.vm, "/status", json!({}));
    });
    for step in both(|case| edit(&mut case.vm, "/spec/resources/memory", json!("much"))) {
        let Step::Done(Outcome::Denied(denial)) = step else { panic!("{step:?}") };
        let start = "VMI a is configured with an eviction strategy but is not live-migratable: ";
        assert!(denial.message().starts_with(start), "{}", denial.message());
    }
}

#[test]
fn only_a_vm_that_migrates_is_counted() {
    let vm = || ("ns".to_owned(), "a".to_owned());
    for denial in [
        Denial::Migrating { namespace: vm().0, vm: vm().1 },
        Denial::CoolingDown { namespace: vm().0, vm: vm().1, seconds: 1 },
        Denial::MigrationTarget,
        Denial::NotMigratable { vm: "a".into(), problem: "p".into() },
        Denial::Starting { namespace: vm().0, vm: vm().1 },
        Denial::PodUnknown("p".into()),
        Denial::VmUnknown("p".into()),
        Denial::NamespaceUnknown("p".into()),
        Denial::NotRecorded("p".into()),
    ] {
        assert!(!denial.message().contains(COUNTED), "{denial:?}");
    }
    assert!(Denial::Triggered { namespace: vm().0, vm: vm().1 }.message().contains(COUNTED));
    assert!(Denial::InProgress { namespace: vm().0, vm: vm().1 }.message().contains(COUNTED));
}

proptest! {
    /// An eviction request is recorded only for an eviction or a deletion of the pod that the VM runs as.
    #[test]
    fn only_an_eviction_of_the_pod_that_counts_is_recorded_whatever_the_state(
        is_deletion: bool,
        is_dry_run: bool,
        is_namespace_ending: bool,
        named in select(vec![json!(null), json!("virt-launcher-a-1"), json!("virt-launcher-a-0")]),
        source in select(vec![json!(null), json!("virt-launcher-a-0")]),
        evacuated in select(vec![json!(null), json!("n1"), json!("n2")]),
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
        edit(&mut case.vm, "/status/evacuationNodeName", evacuated.clone());
        edit(&mut case.vm, "/spec/running", json!(running));
        let counts = named == "virt-launcher-a-1" && node == "n1" && phase != "Failed" && !finalizers.is_null()
            && running && owner == "v1" && !is_namespace_ending;
        let step = case.step();
        let is_recorded = matches!(step, Step::Send(_));
        prop_assert_eq!(is_recorded, counts && evacuated != "n1" && !is_dry_run, "{:?}", step);
        if let Step::Done(Outcome::Denied(denial)) = &step {
            let is_counted = denial.message().contains(COUNTED);
            prop_assert_eq!(is_counted, counts, "{:?}", step);
        }
    }
}
