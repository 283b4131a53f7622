//! A MachineConfig of somebody else that cannot be read: the whole operator against the API model, with a paused clock.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Method, Response};
use kube::{Client, client::Body};
use kube_io::{ApiServer, Clock};
use operator::{OperatorSettings, run_on};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::{
    administrators::{self, configure},
    client::{self, APPLY},
    cluster::{Process, Server},
    fault_plan::FaultPlan,
    machine_config_operator::finish,
};

const PROFILE: &str = "load-aware-rebalancing";
const CONFIGS: &str = "/apis/machineconfiguration.openshift.io/v1/machineconfigs";
const OTHER: &str = "50-worker-other";
const PSI: &str = "99-worker-psi-karg";
const MINUTE: Duration = Duration::from_secs(60);

/// Somebody sets the kernel arguments of a config.
fn set(server: &Server, name: &str, arguments: &[&str]) {
    let config = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"kernelArguments": arguments},
    });
    let uri = format!("{CONFIGS}/{name}?fieldManager=somebody&force=true");
    server.request_as("somebody", Method::PATCH, &uri, APPLY, &config);
}

/// A client to which the next so many reads of the other config are answered with an error.
fn client_of(server: &Server, errors: Arc<AtomicUsize>) -> Client {
    let inner = client::client(server, Process { replica: "one", number: 1 });
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let is_read = request.method() == Method::GET && request.uri().path().ends_with(OTHER);
        let is_broken =
            is_read && errors.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        let inner = inner.clone();
        async move {
            if !is_broken {
                return inner.send(request).await;
            }
            let error =
                json!({"kind": "Status", "status": "Failure", "code": 500, "message": "it cannot be decrypted"});
            Ok(Response::builder().status(500).body(Body::from(error.to_string().into_bytes())).unwrap())
        }
    });
    Client::new(service, "default")
}

fn status(server: &Server) -> Value {
    server.cluster().config(PROFILE).map_or(Value::Null, |config| config["status"].clone())
}

async fn until(server: &Server, limit: Duration, what: &str, holds: impl Fn(&Value) -> bool) {
    let start = Instant::now();
    while !holds(&status(server)) {
        assert!(start.elapsed() <= limit, "never {what}: {:#}\n{}", status(server), server.cluster().log.join("\n"));
        sleep(Duration::from_millis(100)).await;
    }
}

fn condition(status: &Value, kind: &str) -> Value {
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
}

/// A revert was faster than the pool, and another config has the argument that came in between. Whether the pool has something to
/// render follows from all of its configs, and one of them cannot be read. The wait goes on, and people are told.
#[tokio::test(start_paused = true)]
async fn a_config_of_others_that_cannot_be_read_stops_nothing_else() {
    let server = Server::new(1, FaultPlan::none(), administrators::initial_store());
    set(&server, OTHER, &["psi=0"]);
    finish(&server);
    let errors = Arc::new(AtomicUsize::new(0));
    let clock: Box<dyn Fn() -> k8s_openapi::jiff::Timestamp + Send + Sync> = Box::new(server.clock());
    let api_server = ApiServer::over(client_of(&server, errors.clone()));
    let settings = OperatorSettings::with_clock(Clock::new(clock, 1));
    let operator = tokio::spawn(async move { run_on(api_server, settings, std::future::pending()).await });
    configure(&server, PROFILE, json!({"action": "Apply", "bypassOptimisticLock": true}));
    let is_phase = |phase: &'static str| move |status: &Value| status["phase"] == phase;
    until(&server, MINUTE, "written", is_phase("InProgress")).await;
    sleep(MINUTE).await;
    finish(&server);
    until(&server, 2 * MINUTE, "rolled out", is_phase("Completed")).await;

    errors.store(usize::MAX, Ordering::SeqCst);
    set(&server, PSI, &["psi=0"]);
    until(&server, MINUTE, "reverted", is_phase("InProgress")).await;
    let is_stalled = |status: &Value| condition(status, "Stalled")["reason"] == "NoProgress";
    until(&server, 50 * MINUTE, "told", is_stalled).await;
    let asked = usize::MAX - errors.load(Ordering::SeqCst);
    assert!((1..30).contains(&asked), "asked again at each recheck, and not more often: {asked}");

    errors.store(0, Ordering::SeqCst);
    until(&server, 7 * MINUTE, "found that there is nothing to render", is_phase("Completed")).await;
    assert!(!operator.is_finished());
    operator.abort();
}
