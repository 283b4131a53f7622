//! Two operators, as processes of their own: one leads, and when it is stopped the other one does, and never both.

use std::time::{Duration, Instant};

use devcluster::{AuditedRequest, Cluster};
use serde_json::{Value, json};
use testkit::poll;

use crate::replica::{
    CONFIG, LEASE, Replica, SHORT_LEASE, TARGET, TIMEOUT, end, get, grant, is_about_work, prepare, request, until,
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
            // The other one may still be starting when the first has done its work.
            let is_well = async || match replica.answers(path) {
                Ok(answer) if answer.starts_with("HTTP/1.1 200") => Ok(()),
                other => Err(other),
            };
            poll(TIMEOUT, is_well).await.unwrap_or_else(|last| panic!("{}: {path}: {last:?}", replica.user));
        }
    }
    let seen = cluster.audit().since(position, &client).await.unwrap();
    let writers: Vec<&str> = seen.iter().filter(is_about_work).map(|request| request.user.as_str()).collect();
    let [leader, follower] = if writers.contains(&"replica-a") { [0, 1] } else { [1, 0] }.map(|at| &replicas[at]);
    assert!(writers.iter().all(|writer| *writer == leader.user || *writer == "admin"), "{writers:?}");

    let acquired = get(&client, LEASE).await;
    renewals_are_single_requests(&cluster, leader, follower).await;
    let renewed = get(&client, LEASE).await;
    assert_ne!(renewed["spec"]["renewTime"], acquired["spec"]["renewTime"]);
    assert_eq!(renewed["spec"]["acquireTime"], acquired["spec"]["acquireTime"], "a renewal is no acquisition");

    let position = cluster.audit().position(&client).await.unwrap();
    leader.signal("-STOP");
    // Something to do for whoever leads.
    let edit = json!({"data": {"example-key": "somebody else's"}});
    request(&client, "PATCH", TARGET, "application/merge-patch+json", edit).await.unwrap();
    until(&client, CONFIG, "taken over", |config| config["status"]["leaderEpoch"] == 1 && completed(config)).await;
    assert_ne!(get(&client, LEASE).await["spec"]["acquireTime"], acquired["spec"]["acquireTime"], "another leader");
    until(&client, TARGET, "reverted", |target| target["data"]["example-key"] == "example-value").await;

    leader.signal("-CONT");
    assert!(!end(&leader.process).await.success(), "so that it is started again");
    let seen = cluster.audit().since(position, &client).await.unwrap();
    let late: Vec<_> = seen.iter().filter(is_about_work).filter(|request| request.user == leader.user).collect();
    assert!(late.iter().all(|request| !request.succeeded()), "{late:?}");

    follower.process.stop(Duration::from_secs(60)).await.unwrap();
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
    let verbs = |seen: &[AuditedRequest], user: &str| -> Vec<String> {
        let of_user = seen.iter().filter(|request| request.resource == "leases" && request.user == user);
        of_user.map(|request| request.verb.clone()).collect()
    };
    let enough = async || {
        let seen = cluster.audit().since(position, &client).await.unwrap();
        let found = (verbs(&seen, &leader.user), verbs(&seen, &follower.user), start.elapsed());
        if found.0.len() >= 8 && found.1.len() >= 8 { Ok(found) } else { Err(found) }
    };
    let (renewals, reads, elapsed) = poll(TIMEOUT, enough).await.unwrap_or_else(|found| panic!("{found:?}"));
    assert!(renewals.iter().all(|verb| verb == "update"), "{renewals:?}");
    assert!(reads.iter().all(|verb| verb == "get"), "{reads:?}");
    // Every 300 ms at the most.
    let most = usize::try_from(elapsed.as_millis() / 300).unwrap() + 2;
    assert!(renewals.len() <= most && reads.len() <= most, "{renewals:?} and {reads:?} in {elapsed:?}");
    println!("{} renewals and {} reads in {elapsed:.1?}", renewals.len(), reads.len());
}
