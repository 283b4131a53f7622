//! A slow way to the API server, and a process that is stopped: the whole operator against the API model, with a paused clock.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Method, Response};
use kube::{Client, client::Body};
use kube_io::{ApiServer, Clock};
use operator::{LeaseSettings, OperatorSettings, election::LeaseTimes, run_on};
use serde_json::{Value, json};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};

use crate::{
    administrators::{self, configure},
    client,
    cluster::{Process, Server},
    fault_plan::FaultPlan,
    invariants,
};

const EXAMPLE: &str = "example-profile";
const ONE: Process = Process { replica: "one", number: 1 };
/// An idle connection is closed after this time.
const IDLE: Duration = Duration::from_secs(10);

type Handler = Arc<dyn Fn(&Method, &str, &Value) -> Option<Duration> + Send + Sync>;

/// What every request goes through.
#[derive(Clone)]
struct Way {
    inner: Client,
    /// Per direction.
    delay: Duration,
    /// When the connections that are free were used last. A new one takes a round trip of TCP and one of TLS.
    free: Arc<Mutex<Vec<Instant>>>,
    /// How much later than that an answer is noticed.
    stop: Handler,
}

impl Way {
    fn client(&self) -> Client {
        let way = self.clone();
        let service = tower::service_fn(move |request| {
            let way = way.clone();
            async move { way.pass(request).await }
        });
        Client::new(service, "default")
    }

    async fn pass(&self, request: http::Request<Body>) -> Result<Response<Body>, kube::Error> {
        let free = self.free.lock().unwrap().pop().filter(|used| used.elapsed() < IDLE);
        if free.is_none() {
            sleep(self.delay * 4).await;
        }
        sleep(self.delay).await;
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let value = serde_json::from_slice(&body).unwrap_or_default();
        let stop = (self.stop)(&parts.method, &parts.uri.to_string(), &value);
        let answer = self.inner.send(http::Request::from_parts(parts, Body::from(body))).await?;
        sleep(self.delay).await;
        if let Some(stop) = stop {
            sleep(stop).await;
        }
        self.free.lock().unwrap().push(Instant::now());
        Ok(answer)
    }
}

/// The operator, with a lease as it is installed.
fn start(server: &Server, delay: Duration, stop: Handler) -> JoinHandle<()> {
    let way = Way { inner: client::client(server, ONE), delay, free: Arc::default(), stop };
    let lease =
        LeaseSettings { namespace: invariants::NAMESPACE.into(), id: ONE.to_string(), times: LeaseTimes::default() };
    let clock: Box<dyn Fn() -> k8s_openapi::jiff::Timestamp + Send + Sync> = Box::new(server.clock());
    let settings = OperatorSettings { lease: Some(lease), ..OperatorSettings::with_clock(Clock::new(clock, 1)) };
    let api_server = ApiServer::over(way.client());
    tokio::spawn(async move {
        let ended = run_on(api_server, settings, std::future::pending()).await;
        panic!("it ended: {ended:?}");
    })
}

async fn until(server: &Server, limit: Duration, what: &str, holds: impl Fn(&Value) -> bool) -> Duration {
    let start = Instant::now();
    loop {
        let config = server.cluster().config(EXAMPLE).map(|config| (**config).clone()).unwrap_or_default();
        if holds(&config) {
            return start.elapsed();
        }
        if start.elapsed() > limit {
            let log = server.cluster().log.join("\n");
            panic!("never {what}: {:#}\n{log}", config["status"]);
        }
        sleep(Duration::from_millis(100)).await;
    }
}

fn server() -> Server {
    Server::new(1, FaultPlan::none(), administrators::initial_store())
}

/// Found with delays of 3 s and more per direction: nothing was ever planned, and nobody ever led.
#[tokio::test(start_paused = true)]
async fn on_a_slow_way_everything_takes_longer_and_nothing_stops() {
    for seconds in [0, 1, 3, 5, 10] {
        let (server, delay) = (server(), Duration::from_secs(seconds));
        let operator = start(&server, delay, Arc::new(|_, _, _| None));
        configure(&server, EXAMPLE, json!({"action": "DryRun"}));
        let limit = Duration::from_secs(10 + 60 * seconds);
        let planned = until(&server, limit, "planned", |config| config["status"]["phase"] == "ReviewRequired").await;
        configure(&server, EXAMPLE, json!({"action": "Apply"}));
        let applied = until(&server, limit, "applied", |config| config["status"]["phase"] == "Completed").await;
        println!("{seconds} s per direction: planned after {planned:.0?}, applied after {applied:.0?}");
        assert!(!operator.is_finished(), "it still leads");
        assert!(server.cluster().violations.is_empty(), "{:?}", server.cluster().violations);
        operator.abort();
    }
}

/// Found with real processes: stopped between the record of an item and its write, an operator wrote when it continued, although
/// the consent was withdrawn.
#[tokio::test(start_paused = true)]
async fn after_a_stop_before_a_write_the_operator_looks_again() {
    // Everything that happens between the consent and the write.
    let moments: [(&str, &str); 2] = [("PUT", "/status"), ("POST", "virtplatformplanrecords")];
    for (method, path) in moments {
        for stop in [Duration::from_millis(1100), Duration::from_secs(5), Duration::from_secs(21)] {
            let server = server();
            let was_stopped = Arc::new(AtomicBool::new(false));
            let (seen, withdraws) = (was_stopped.clone(), server.clone());
            let stops: Handler = Arc::new(move |sent, uri, body| {
                let items = body["status"]["items"].as_array().cloned().unwrap_or_default();
                let is_applying = items.iter().any(|item| item["state"] == "InProgress");
                let is_moment = *sent == method && uri.contains(path) && (method == "POST" || is_applying);
                if !is_moment || seen.swap(true, Ordering::SeqCst) {
                    return None;
                }
                // While it is stopped.
                let server = withdraws.clone();
                tokio::spawn(async move {
                    sleep(stop / 2).await;
                    configure(&server, EXAMPLE, json!({"action": "DryRun"}));
                });
                Some(stop)
            });
            is_withdrawn_and_unwritten(&server, stops, &format!("{method} {path}, {stop:?}")).await;
            assert!(was_stopped.load(Ordering::SeqCst));
        }
    }
}

/// Found by reading: the second confirmation could take twice as long as the first, and that one may have been a stop, too.
#[tokio::test(start_paused = true)]
async fn after_two_stops_one_after_the_other_the_operator_looks_again() {
    for (first, second) in [(2, 3), (5, 8), (8, 5)] {
        let (server, seen) = (server(), Arc::new(AtomicUsize::new(0)));
        let (stops_seen, withdraws) = (seen.clone(), server.clone());
        let stops: Handler = Arc::new(move |sent, uri, body| {
            let items = body["status"]["items"].as_array().cloned().unwrap_or_default();
            let is_applying = items.iter().any(|item| item["state"] == "InProgress");
            let is_confirmation = *sent == "GET" && uri.ends_with("virtplatformconfigs/example-profile");
            match stops_seen.load(Ordering::SeqCst) {
                0 if *sent == "PUT" && is_applying => {
                    stops_seen.store(1, Ordering::SeqCst);
                    Some(Duration::from_secs(first))
                }
                1 if is_confirmation => {
                    stops_seen.store(2, Ordering::SeqCst);
                    let server = withdraws.clone();
                    tokio::spawn(async move {
                        sleep(Duration::from_secs(second) / 2).await;
                        configure(&server, EXAMPLE, json!({"action": "DryRun"}));
                    });
                    Some(Duration::from_secs(second))
                }
                _ => None,
            }
        });
        is_withdrawn_and_unwritten(&server, stops, &format!("{first} s and {second} s")).await;
        assert_eq!(seen.load(Ordering::SeqCst), 2, "it was stopped twice");
    }
}

/// Gives consent, waits until it is withdrawn during a stop, and checks that nothing was written.
async fn is_withdrawn_and_unwritten(server: &Server, stops: Handler, case: &str) {
    let operator = start(server, Duration::ZERO, stops);
    configure(server, EXAMPLE, json!({"action": "Apply"}));
    let is_withdrawn = |config: &Value| {
        config["spec"]["action"] == "DryRun"
            && config["status"]["phase"] == "ReviewRequired"
            && config["status"]["observedGeneration"] == config["metadata"]["generation"]
    };
    until(server, Duration::from_secs(120), "withdrawn", is_withdrawn).await;
    let is_written = client::exists(server, "/api/v1/namespaces/openshift-cnv/configmaps/example-config");
    assert!(!is_written, "{case}: {}", server.cluster().log.join("\n"));
    operator.abort();
}

/// Found by reading: the status was stored, the answer was lost, and nobody was told.
#[tokio::test(start_paused = true)]
async fn people_are_told_of_an_update_whose_answer_was_lost() {
    let server = server();
    let (told, was_lost) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
    let (notes, lost) = (told.clone(), was_lost.clone());
    let loses: Handler = Arc::new(move |sent, uri, body| {
        if uri.contains("/events.k8s.io/") {
            notes.lock().unwrap().extend(body["note"].as_str().map(str::to_owned));
        }
        let is_update = *sent == "PUT" && body["status"]["phase"] == "ReviewRequired";
        // Nobody waits for an answer that long.
        (is_update && !lost.swap(true, Ordering::SeqCst)).then_some(Duration::from_secs(600))
    });
    let operator = start(&server, Duration::ZERO, loses);
    configure(&server, EXAMPLE, json!({"action": "DryRun"}));
    until(&server, Duration::from_secs(60), "planned", |config| config["status"]["phase"] == "ReviewRequired").await;
    sleep(Duration::from_secs(120)).await;
    assert!(was_lost.load(Ordering::SeqCst));
    let told = told.lock().unwrap().clone();
    let count = told.iter().filter(|note| note.starts_with("ReviewRequired (was Drafting)")).count();
    assert_eq!(count, 1, "{told:#?}");
    operator.abort();
}
