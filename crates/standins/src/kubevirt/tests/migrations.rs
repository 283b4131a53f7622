use super::*;

#[test]
fn a_guest_that_is_to_leave_its_node_is_migrated_step_by_step() {
    use Kind::{Instance, Migration, Pod};
    let source = (Pod, pod("p", Some("one"), None));
    let guest = (Instance, marked());
    let target = |node: Option<&str>| (Pod, pod("t", node, Some("m")));
    let at = |phase: &str| (Migration, migration("m", phase, "a"));
    for (case, second, objects, expected) in [
        ("marked", 100, vec![], vec!["asking for the migration of n/a"]),
        ("queued", 100, vec![at("")], vec!["noting phase Scheduling of migration n/m"]),
        ("without a target", 100, vec![at("Scheduling")], vec!["creating the target pod of n/a"]),
        ("for the scheduler", 100, vec![at("Scheduling"), target(None)], vec![]),
        ("placed", 101, vec![at("Scheduling"), target(Some("two"))], vec!["noting phase Running of migration n/m"]),
        ("copying", 119, vec![at("Running"), target(Some("two"))], vec![]),
        ("copied", 120, vec![at("Running"), target(Some("two"))], vec!["handing over n/a"]),
    ] {
        let objects: Vec<_> = [guest.clone(), source.clone()].into_iter().chain(objects).collect();
        assert_eq!(told(second, &objects), expected, "{case}");
    }
    let mut moved = running("LiveMigrate", "True");
    moved.data["status"]["nodeName"] = "two".into();
    let after = [(Instance, moved), source, target(Some("two")), at("Running")];
    assert_eq!(told(120, &after), ["letting go of pod n/p", "noting phase Succeeded of migration n/m"]);
    let gone = [at("Running"), target(Some("two"))];
    assert_eq!(told(120, &gone), ["letting go of pod n/t", "noting phase Failed of migration n/m"]);
}

#[test]
fn no_more_guests_move_at_a_time_than_kubevirt_allows() {
    let limits = json!({"parallelMigrationsPerCluster": 3, "parallelOutboundMigrationsPerNode": 2});
    let kubevirt = object(json!({"metadata": {"name": "k"}, "spec": {"configuration": {"migrations": limits}}}));
    let mut objects = vec![(Kind::KubeVirt, kubevirt)];
    for (number, node) in ["one", "one", "one", "two", "two"].into_iter().enumerate() {
        let name = format!("g{number}");
        let mut guest = running("LiveMigrate", "True");
        guest.metadata.name = Some(name.clone());
        guest.metadata.uid = Some(name.clone());
        guest.data["status"]["nodeName"] = node.into();
        objects.push((Kind::Instance, guest));
        objects.push((Kind::Migration, migration(&format!("m{number}"), "Pending", &name)));
    }
    let mut told = told(100, &objects);
    told.retain(|request| request.starts_with("noting phase Scheduling"));
    let expected = ["m0", "m1", "m3"].map(|name| format!("noting phase Scheduling of migration n/{name}"));
    assert_eq!(told, expected);
}

#[test]
fn others_look_after_external_guests() {
    let mut external = marked();
    external.data["spec"]["evictionStrategy"] = "External".into();
    assert_eq!(told(0, &[(Kind::Instance, external), (Kind::Pod, pod("p", Some("one"), None))]), [""; 0]);
}

/// A migration of guest `a` that failed at this second.
fn failed(name: &str, second: i64) -> (Kind, DynamicObject) {
    let mut ended = migration(name, "Failed", "a");
    let time = Timestamp::from_second(second).unwrap().to_string();
    ended.data["status"]["phaseTransitionTimestamps"] = json!([{"phase": "Failed", "phaseTransitionTimestamp": time}]);
    (Kind::Migration, ended)
}

fn next_failing(second: i64, times: u32, objects: &[(Kind, DynamicObject)]) -> Actions {
    let settings = KubeVirtSettings { failing: [("a".to_owned(), times)].into(), ..settings() };
    decide(&cluster(objects), Timestamp::from_second(second).unwrap(), &settings)
}

#[test]
fn a_migration_that_fails_is_tried_again_as_often_as_it_takes() {
    use Kind::{Instance, Migration, Pod};
    let (guest, source) = ((Instance, marked()), (Pod, pod("p", Some("one"), None)));
    let running = (Migration, migration("m", "Running", "a"));
    let copied = [guest.clone(), source.clone(), running, (Pod, pod("t", Some("two"), Some("m")))];
    let fails = next_failing(120, 1, &copied);
    assert_eq!(fails.requests[0].to_string(), "noting phase Failed of migration n/m");
    let Write::ChangeStatus(change) = &fails.requests[0].write else { panic!("{fails:?}") };
    assert_eq!(change.pointer("/status/migrationState/failed"), Some(&json!(true)));

    let copied = [&copied[..], &[failed("f", 50)]].concat();
    assert_eq!(next_failing(120, 1, &copied).requests[0].to_string(), "handing over n/a", "one failure was asked for");
    assert_eq!(next_failing(120, 2, &copied).requests[0].to_string(), "noting phase Failed of migration n/m");

    let left = [guest, source, (Pod, pod("t", Some("two"), Some("f"))), failed("f", 50)];
    assert_eq!(told(50, &left), ["letting go of pod n/t", "asking for the migration of n/a"]);
}

#[test]
fn the_pause_after_a_failure_doubles_with_each_one_until_a_success() {
    let guest = || (Kind::Instance, marked());
    let source = || (Kind::Pod, pod("p", Some("one"), None));
    let queued = || (Kind::Migration, migration("m", "Pending", "a"));
    let mut success = migration("s", "Succeeded", "a");
    let time = "1970-01-01T00:00:30Z";
    success.data["status"]["phaseTransitionTimestamps"] =
        json!([{"phase": "Succeeded", "phaseTransitionTimestamp": time}]);
    for (case, ended, until) in [
        ("one", vec![failed("f1", 100)], 120),
        ("two", vec![failed("f1", 50), failed("f2", 100)], 140),
        ("three", vec![failed("f3", 100), failed("f1", 50), failed("f2", 70)], 180),
        (
            "before a success",
            vec![failed("f1", 10), failed("f2", 20), (Kind::Migration, success), failed("f3", 100)],
            120,
        ),
    ] {
        let objects = [vec![guest(), source(), queued()], ended].concat();
        let waits = next_at(until - 1, &objects);
        assert_eq!((waits.requests.len(), waits.wake_at), (0, Some(Timestamp::from_second(until).unwrap())), "{case}");
        assert_eq!(told(until, &objects), ["noting phase Scheduling of migration n/m"], "{case}");
    }
}

#[test]
fn the_last_five_migrations_of_a_guest_are_kept() {
    let mut objects = vec![(Kind::Instance, marked()), (Kind::Pod, pod("p", Some("one"), None))];
    objects.extend((1..=6).map(|number| failed(&format!("f{number}"), 10 * number)));
    assert_eq!(told(999, &objects), ["removing migration n/f1", "asking for the migration of n/a"]);
    objects.retain(|(_, object)| object.metadata.name.as_deref() != Some("f1"));
    assert_eq!(told(999, &objects), ["asking for the migration of n/a"]);
}

#[test]
fn a_target_pod_that_fits_nowhere_is_given_up_after_a_while() {
    let mut target = pod("t", None, Some("m"));
    target.data["status"] =
        json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
    let source = (Kind::Pod, pod("p", Some("one"), None));
    let scheduling = (Kind::Migration, migration("m", "Scheduling", "a"));
    let objects = [(Kind::Instance, marked()), source, scheduling, (Kind::Pod, target)];
    let waits = next_at(399, &objects);
    assert_eq!((waits.requests.len(), waits.wake_at), (0, Some(Timestamp::from_second(400).unwrap())));
    assert_eq!(told(400, &objects), ["noting phase Failed of migration n/m"]);
}
