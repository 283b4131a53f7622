//! The way to the API server: connections that die without a word, and a way that is slow.

use std::time::{Duration, Instant};

use kube::Config;
use operator::{LeaseSettings, OperatorSettings};
use serde_json::{Value, json};
use testkit::{
    configs::phase,
    platform::{LOAD_AWARE, Platform},
    tcp_proxy::TcpProxy,
    within,
};
use tokio::task::JoinHandle;

/// An operator behind a proxy, with a lease as it is installed. It ends with the value.
struct Distant {
    proxy: TcpProxy,
    task: JoinHandle<()>,
}

impl Drop for Distant {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Distant {
    async fn start(platform: &Platform, delay: Duration) -> Distant {
        // Another test may have left its lease behind.
        platform.delete(&lease()).await;
        let config: Config = platform.cluster.access().config(&platform.operator().await).await.unwrap();
        let proxy = TcpProxy::start(&config, delay).await;
        let config = proxy.config(&config);
        let lease = Some(LeaseSettings::new("openshift-cnv".into()));
        let settings = OperatorSettings { lease, ..OperatorSettings::default() };
        let task = tokio::spawn(async move {
            let ended = operator::run(config, settings, std::future::pending()).await;
            panic!("the operator ended: {ended:?}");
        });
        Distant { proxy, task }
    }
}

fn lease() -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": advisor::access::LEASE, "namespace": "openshift-cnv"},
    })
}

/// Waits until the lease was renewed a few times: by then the operator has got all answers, and nothing is under way.
async fn rest(platform: &Platform) {
    for _ in 0..3 {
        let before = platform.get(&lease()).await["spec"]["renewTime"].clone();
        let renewed = async || (platform.get(&lease()).await["spec"]["renewTime"] != before).then_some(());
        within(Duration::from_secs(100), "the lease is renewed", renewed).await;
    }
}

/// The operator was deaf for five minutes. Now an edit is acted on within half a minute, and the lease is kept.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_acted_on_within_thirty_seconds_after_all_connections_died_silently() {
    let platform = Platform::shared().await;
    let operator = Distant::start(&platform, Duration::ZERO).await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    platform.until(LOAD_AWARE, "planned", |config| phase(config) == "ReviewRequired").await;
    rest(&platform).await;

    // Twice: also the connections that replaced the first ones die.
    for total in [7, 8] {
        operator.proxy.silence();
        let start = Instant::now();
        platform.configure(LOAD_AWARE, json!({"options": {"loadAware": {"evictionLimitTotal": total}}})).await;
        let planned = async || {
            let config = platform.config(LOAD_AWARE).await;
            let is_new = config["status"]["observedGeneration"] == config["metadata"]["generation"];
            (is_new && phase(&config) == "ReviewRequired").then_some(())
        };
        within(Duration::from_secs(30), "the edit is acted on", planned).await;
        println!("acted on after {:.1?}", start.elapsed());
        rest(&platform).await;
    }
    assert!(!operator.task.is_finished(), "it still leads");
}

async fn plans_with(delay: Duration, limit: Duration) {
    let platform = Platform::shared().await;
    let start = Instant::now();
    let operator = Distant::start(&platform, delay).await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    let planned = async || (phase(&platform.config(LOAD_AWARE).await) == "ReviewRequired").then_some(());
    within(limit, "the plan is made", planned).await;
    println!("{delay:?} per direction: planned after {:.1?}", start.elapsed());
    assert!(!operator.task.is_finished(), "it still leads");
}

/// With 3 s and more per direction, nothing was ever planned: a new connection exceeded the deadline of every read.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: `make test-faults` runs it"]
async fn a_delay_of_three_seconds_per_direction_makes_the_operator_slower_and_does_not_stop_it() {
    plans_with(Duration::from_secs(3), Duration::from_secs(180)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: `make test-faults` runs it"]
async fn a_delay_of_ten_seconds_per_direction_makes_the_operator_slower_and_does_not_stop_it() {
    plans_with(Duration::from_secs(10), Duration::from_secs(600)).await;
}
