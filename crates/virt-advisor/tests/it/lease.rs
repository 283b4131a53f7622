//! Two operators, as processes of their own: one leads, and when it is stopped the other one does, and never both.

use std::time::{Duration, Instant};

use devcluster::{Cluster, Request};
use serde_json::{Value, json};

use crate::replica::{
    CONFIG, LEASE, Replica, SHORT_LEASE, TARGET, TIMEOUT, get, grant, is_about_work, prepare, request, until,
};

/// One leads and writes, both answer probes; a leader that is stopped is followed, and when it wakes up it has nothing to
/// say any more.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_leads_and_a_leader_that_was_stopped_writes_nothing_when_it_wakes_up() {
    let cluster = Cluster::builder().start().await.unwrap();
    let client = prepare(&cluster, "Apply").await;
    grant(&client, &["replica-a", "replica-b"]).await;
    let position = cluster.audit().position(&client).await.unwrap();
    let beginning = position;
    let replicas = [
        Replica::start(&cluster, "replica-a", &SHORT_LEASE).await,
        Replica::start(&cluster, "replica-b", &SHORT_LEASE).await,
    ];
    let completed = |config: &Value| config["status"]["phase"] == "Completed";
    let first = until(&client, CONFIG, "completed", completed).await;
    assert_eq!(first["status"]["leaderEpoch"], 0);
    for replica in &replicas {
        for path in ["/healthz", "/readyz"] {
            let answer = replica.answers(path);
            assert!(answer.starts_with("HTTP/1.1 200"), "{}: {path}: {answer}", replica.user);
        }
    }
    let seen = cluster.audit().since(position, &client).await.unwrap();
    let writers: Vec<&str> = seen.iter().filter(is_about_work).map(|request| request.user.as_str()).collect();
    let [leader, follower] = if writers.contains(&"replica-a") { [0, 1] } else { [1, 0] }.map(|at| &replicas[at]);
    assert!(writers.iter().all(|writer| *writer == leader.user || *writer == "admin"), "{writers:?}");

    renewals_are_single_requests(&cluster, leader, follower).await;

    let position = cluster.audit().position(&client).await.unwrap();
    leader.signal("-STOP");
    // Something to do for whoever leads.
    let edit = json!({"data": {"example-key": "somebody else's"}});
    request(&client, "PATCH", TARGET, "application/merge-patch+json", edit).await.unwrap();
    until(&client, CONFIG, "taken over", |config| config["status"]["leaderEpoch"] == 1 && completed(config)).await;
    until(&client, TARGET, "reverted", |target| target["data"]["example-key"] == "example-value").await;

    leader.signal("-CONT");
    let start = Instant::now();
    while leader.process.exit_status().is_none() {
        assert!(start.elapsed() < TIMEOUT, "it goes on: {}", leader.process.log_tail());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!leader.process.exit_status().unwrap().success(), "so that it is started again");
    let seen = cluster.audit().since(position, &client).await.unwrap();
    let late: Vec<_> = seen.iter().filter(is_about_work).filter(|request| request.user == leader.user).collect();
    assert!(late.iter().all(|request| !request.succeeded()), "{late:?}");

    follower.process.stop(Duration::from_secs(5)).await.unwrap();
    let lease = get(&client, LEASE).await;
    assert_eq!(lease["spec"]["holderIdentity"], "", "given up, so that the next one need not wait");
    assert_eq!(lease["spec"]["leaseTransitions"], 1);
    for replica in &replicas {
        let refused = cluster.audit().refusals_since(beginning, &client, &replica.user).await.unwrap();
        assert!(refused.is_empty(), "the rights that it is shipped with do not suffice: {refused:?}");
    }
}

/// A leader renews with one request and reads nothing; a replica that waits makes one read per attempt.
async fn renewals_are_single_requests(cluster: &Cluster, leader: &Replica, follower: &Replica) {
    let client = cluster.access().client().await.unwrap();
    let position = cluster.audit().position(&client).await.unwrap();
    let start = Instant::now();
    let verbs = |seen: &[Request], user: &str| -> Vec<String> {
        let of_user = seen.iter().filter(|request| request.resource == "leases" && request.user == user);
        of_user.map(|request| request.verb.clone()).collect()
    };
    loop {
        let seen = cluster.audit().since(position, &client).await.unwrap();
        let elapsed = start.elapsed();
        let (renewals, reads) = (verbs(&seen, &leader.user), verbs(&seen, &follower.user));
        if renewals.len() >= 8 && reads.len() >= 8 {
            assert!(renewals.iter().all(|verb| verb == "update"), "{renewals:?}");
            assert!(reads.iter().all(|verb| verb == "get"), "{reads:?}");
            // Every 300 ms at the most.
            let most = usize::try_from(elapsed.as_millis() / 300).unwrap() + 2;
            assert!(renewals.len() <= most && reads.len() <= most, "{renewals:?} and {reads:?} in {elapsed:?}");
            println!("{} renewals and {} reads in {elapsed:.1?}", renewals.len(), reads.len());
            return;
        }
        assert!(elapsed < TIMEOUT, "{renewals:?} and {reads:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
