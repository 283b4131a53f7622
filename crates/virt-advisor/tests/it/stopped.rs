//! An operator, as a process of its own, is stopped (SIGSTOP) after it has recorded that an item is being applied and before it
//! writes the item. The consent is withdrawn meanwhile. When the process continues, it must not write any more.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use devcluster::{AuditedRequest, Cluster};
use futures::FutureExt;
use kube::Client;
use serde_json::{Value, json};
use testkit::{eventually, webhook::Webhook};
use tokio::sync::Semaphore;

use crate::replica::{CONFIG, Replica, SHORT_LEASE, TARGET, end, get, grant, prepare, request, until};

/// Holds the status update that says that an item is being applied, when it is asked to.
#[derive(Clone, Default)]
struct Gate(Arc<GateState>);

#[derive(Default)]
struct GateState {
    calls: AtomicUsize,
    /// Whether the next update is held, and whose update is.
    state: Mutex<(bool, Option<String>)>,
    open: Option<Semaphore>,
}

impl Gate {
    async fn install(client: &Client) -> Gate {
        let gate = Gate(Arc::new(GateState { open: Some(Semaphore::new(0)), ..GateState::default() }));
        let handler = gate.clone();
        let webhook = Webhook::handled_by(move |review| handler.clone().admit(review).boxed()).await;
        let configuration = webhook.configuration("virtplatformconfigs/status", "advisor.kubevirt.io");
        let uri = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
        request(client, "POST", uri, "application/json", configuration).await.unwrap();
        let uri = format!("{CONFIG}/status?dryRun=All");
        eventually("the webhook is asked", async || {
            request(client, "PATCH", &uri, "application/merge-patch+json", json!({"status": {}})).await;
            (gate.0.calls.load(Ordering::SeqCst) > 0).then_some(())
        })
        .await;
        gate
    }

    async fn admit(self, review: Value) -> Option<String> {
        self.0.calls.fetch_add(1, Ordering::SeqCst);
        let items = review["object"]["status"]["items"].as_array().cloned().unwrap_or_default();
        let is_applying = |item: &Value| item["state"] == "InProgress" && item["appliedFingerprint"].is_null();
        let is_held = {
            let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
            let is_held = state.0 && items.iter().any(is_applying);
            if is_held {
                *state = (false, review["userInfo"]["username"].as_str().map(str::to_owned));
            }
            is_held
        };
        if is_held {
            self.0.open.as_ref().unwrap().acquire().await.unwrap().forget();
        }
        None
    }

    fn close(&self) {
        *self.0.state.lock().unwrap_or_else(PoisonError::into_inner) = (true, None);
    }

    /// Waits until an update is held. Returns who sent it.
    async fn reached(&self) -> String {
        let sender = async || self.0.state.lock().unwrap_or_else(PoisonError::into_inner).1.clone();
        eventually("an item is recorded", sender).await
    }

    fn open(&self) {
        self.0.open.as_ref().unwrap().add_permits(1);
    }
}

/// How long a process is stopped.
#[derive(Debug, Clone, Copy)]
enum Stop {
    For(Duration),
    UntilReplaced,
}

struct Scene {
    cluster: Cluster,
    client: Client,
    gate: Gate,
    replicas: Vec<Replica>,
    lease: &'static [&'static str],
}

impl Scene {
    async fn start(users: &[&str], lease: &'static [&'static str]) -> Scene {
        let cluster = Cluster::builder().start().await.unwrap();
        let client = prepare(&cluster, "DryRun").await;
        grant(&client, users).await;
        let gate = Gate::install(&client).await;
        let mut replicas = Vec::new();
        for user in users {
            replicas.push(Replica::start(&cluster, user, lease).await);
        }
        let scene = Scene { cluster, client, gate, replicas, lease };
        scene.waits_for_review().await;
        scene
    }

    async fn set_action(&self, action: &str) {
        let edit = json!({"spec": {"action": action}});
        request(&self.client, "PATCH", CONFIG, "application/merge-patch+json", edit).await.unwrap();
    }

    /// Waits until the newest edit is acted on and the plan waits for its review.
    async fn waits_for_review(&self) {
        let is_reviewed = |config: &Value| {
            config["status"]["phase"] == "ReviewRequired"
                && config["status"]["observedGeneration"] == config["metadata"]["generation"]
        };
        until(&self.client, CONFIG, "waiting for review", is_reviewed).await;
    }

    /// Stops the leader between the record of an item and its write, for so long or until another replica has taken over, and
    /// withdraws the consent meanwhile. Returns whether another replica took over.
    async fn stop_the_leader(&mut self, stop: Stop) -> bool {
        let epoch = |config: &Value| config["status"]["leaderEpoch"].clone();
        self.gate.close();
        self.set_action("Apply").await;
        let user = self.gate.reached().await;
        let at = self.replicas.iter().position(|replica| replica.user == user).unwrap();
        self.replicas[at].signal("-STOP");
        let stopped = Instant::now();
        self.gate.open();
        let recorded = until(&self.client, CONFIG, "recorded as being applied", |config| {
            config["status"]["items"][0]["state"] == "InProgress"
        })
        .await;
        let position = self.cluster.audit().position(&self.client).await.unwrap();
        self.set_action("DryRun").await;
        match stop {
            Stop::For(time) => tokio::time::sleep(time.saturating_sub(stopped.elapsed())).await,
            Stop::UntilReplaced => {
                until(&self.client, CONFIG, "taken over", |config| epoch(config) != epoch(&recorded)).await;
            }
        }
        self.replicas[at].signal("-CONT");

        // Either it goes on leading, or it ends and is started again as a kubelet would do it.
        self.waits_for_review().await;
        let now = get(&self.client, CONFIG).await;
        let is_taken_over = epoch(&now) != epoch(&recorded);
        if is_taken_over {
            end(&self.replicas[at].process).await;
        }
        let seen = self.cluster.audit().since(position, &self.client).await.unwrap();
        let is_late = |request: &&AuditedRequest| request.resource == "configmaps" && request.is_write();
        let late: Vec<&AuditedRequest> = seen.iter().filter(is_late).collect();
        assert!(late.is_empty(), "written after the consent was withdrawn: {late:?}");
        assert!(get(&self.client, TARGET).await.is_null());
        if self.replicas[at].process.exit_status().is_some() {
            self.replicas[at] = Replica::start(&self.cluster, &user, self.lease).await;
        }
        is_taken_over
    }
}

/// Found with random faults: it wrote what nobody wanted any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_stopped_before_a_write_asks_again_before_it_writes() {
    let mut scene = Scene::start(&["replica-a"], &[]).await;
    assert!(!scene.stop_the_leader(Stop::For(Duration::from_secs(5))).await);
    scene.set_action("Apply").await;
    until(&scene.client, TARGET, "written with consent", |target| !target.is_null()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_stopped_before_a_write_and_replaced_writes_nothing() {
    let mut scene = Scene::start(&["replica-a", "replica-b"], &SHORT_LEASE).await;
    assert!(scene.stop_the_leader(Stop::UntilReplaced).await, "nobody took over");
}

/// With the times that the operator is shipped with.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes six minutes: `make test-faults` runs it"]
async fn twenty_stops_of_five_and_twenty_one_seconds_lead_to_no_late_write() {
    let mut scene = Scene::start(&["replica-a", "replica-b"], &[]).await;
    for round in 0..20 {
        // A lease runs out after 15 s.
        let (stop, is_replaced) = if round % 2 == 0 { (5, false) } else { (21, true) };
        let is_taken_over = scene.stop_the_leader(Stop::For(Duration::from_secs(stop))).await;
        println!("{round}: stopped for {stop} s, taken over: {is_taken_over}");
        assert_eq!(is_taken_over, is_replaced, "round {round}, stopped for {stop} s");
    }
}
