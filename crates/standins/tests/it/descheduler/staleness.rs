//! No eviction is based on old values. With the real Prometheus, alone and queried by the descheduler.

use std::time::Instant;

use balance::promql::{Source, node_series};
use devcluster::{Port, RunningProgram};
use lab_parts::soft_tainter::percents;

use super::*;

const SCORE: &str = "descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m";
const DRY_RUN: &str = "\"Evicted pod in dry run mode\"";

/// A Prometheus without a cluster.
struct StandalonePrometheus {
    settings: prometheus::PrometheusSettings,
    folder: TempDir,
    port: Port,
    process: Option<RunningProgram>,
}

impl StandalonePrometheus {
    fn start(settings: prometheus::PrometheusSettings, program: &Path) -> StandalonePrometheus {
        let mut standalone = StandalonePrometheus {
            settings,
            folder: tempfile::tempdir().unwrap(),
            port: Port::reserve().unwrap(),
            process: None,
        };
        let (name, rules) = standalone.settings.rule_file();
        std::fs::write(standalone.folder.path().join(name), rules).unwrap();
        std::fs::write(standalone.folder.path().join("prometheus.yml"), standalone.settings.configuration()).unwrap();
        standalone.run(program);
        standalone
    }

    fn run(&mut self, program: &Path) {
        let folder = self.folder.path();
        let mut args = vec![
            "--config.file=prometheus.yml".to_owned(),
            "--storage.tsdb.path=data".to_owned(),
            "--storage.tsdb.no-lockfile".to_owned(),
            format!("--web.listen-address={}", self.port.address()),
        ];
        args.extend(self.settings.flags());
        self.process = Some(RunningProgram::spawn("prometheus", program, args, folder, &folder.join("log")).unwrap());
    }

    /// The answer to a query, with further parameters.
    async fn answer(&self, query: &str, more: &str) -> Option<Value> {
        let client = http_client(&format!("http://{}", self.port.address()));
        let request = http::Request::get(format!("/api/v1/query?query={query}{more}")).body(Vec::new()).unwrap();
        Some(serde_json::from_str(&client.request_text(request).await.ok()?).unwrap())
    }

    /// The values of a series by node; none while there is no answer.
    async fn ask(&self, series: &str, more: &str) -> Option<BTreeMap<String, f64>> {
        let answer = self.answer(series, more).await?;
        let samples = answer["data"]["result"].as_array().unwrap();
        let read = |sample: &Value| {
            let node = sample["metric"]["instance"].as_str().unwrap_or_default().to_owned();
            (node, sample["value"][1].as_str().unwrap().parse().unwrap())
        };
        Some(samples.iter().map(read).collect())
    }

    async fn records(&self) {
        let expected: BTreeMap<String, f64> = [("cold".into(), 0.0), ("hot".into(), 1.0), ("mild".into(), 0.0)].into();
        let recorded = async || (self.ask(SCORE, "").await? == expected).then_some(());
        eventually(format!("{} are recorded", self.settings.signals), recorded).await;
    }
}

fn now() -> f64 {
    jiff::Timestamp::now().as_millisecond() as f64 / 1000.0
}

/// Holds L9 (missing series) and L12 (unloaded rules).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scores_end_soon_after_the_last_scrape_whatever_they_are_made_of_and_averaged_over() {
    let program = tokio::task::spawn_blocking(|| tools::ensure(Program::Prometheus)).await.unwrap().unwrap();
    let exporter = FakeExporter::start(USE.map(|(node, share)| (node.to_owned(), [share, 0.0, 0.3, 0.0])));
    let settings = |signals, window| prometheus::PrometheusSettings {
        signals,
        window: Duration::from_secs(window),
        time_scale: TIME_SCALE,
        ..prometheus::PrometheusSettings::new(exporter.address().to_string())
    };
    let mut all: Vec<StandalonePrometheus> =
        Source::ALL.map(|signals| StandalonePrometheus::start(settings(signals, 60), &program)).into();
    // A window that is much longer than the time for which scrapes count.
    all.push(StandalonePrometheus::start(settings(Source::Gauges, 1200), &program));
    for standalone in &all {
        standalone.records().await;
    }
    // Any of the algorithms can drive the descheduler.
    for standalone in &all {
        for algorithm in balance::Algorithm::all() {
            let answer = standalone.answer(&node_series(&algorithm), "").await.unwrap();
            let nodes: Vec<String> = percents(&answer).unwrap().into_keys().collect();
            assert_eq!(nodes, ["cold", "hot", "mild"], "{algorithm}: {answer}");
        }
        let older = standalone.answer("descheduler:combined_utilization_and_pressure:avg1m", "").await.unwrap();
        let hot = percents(&older).unwrap()["hot"];
        // Scrapes are not exactly on time, so the rate is not exact.
        assert!((88..=92).contains(&hot), "{hot}");
    }

    exporter.stop();
    let late = now() + prometheus::OLDEST.div_f64(TIME_SCALE).as_secs_f64();
    eventually("90 s are over", async || (now() > late).then_some(())).await;
    for standalone in &all {
        let found = standalone.ask(SCORE, &format!("&time={late}")).await.unwrap();
        assert!(found.is_empty(), "{} over {:?}: {found:?}", standalone.settings.signals, standalone.settings.window);
    }
    let averaged = all[3].ask("avg_over_time(node_cpu_usage_ratio%5B60s%5D)", "").await.unwrap();
    assert_eq!(averaged.len(), 3, "without the limit of the rules there would still be an average");

    // A value that was recorded before a crash is not found long after it.
    exporter.resume();
    let standalone = &mut all[0];
    standalone.records().await;
    standalone.process.take().unwrap().kill();
    let (crash, last) = (now(), standalone.settings.oldest());
    exporter.stop();
    standalone.run(&program);
    eventually("Prometheus is back", async || standalone.ask("up", "").await).await;
    let at = |age: Duration| format!("&time={}", crash + age.as_secs_f64());
    assert!(!standalone.ask(SCORE, &at(Duration::ZERO)).await.unwrap().is_empty(), "it remembers");
    let by_default = format!("{}&lookback_delta=5m", at(last));
    assert!(!standalone.ask(SCORE, &by_default).await.unwrap().is_empty(), "by default for five minutes");
    assert!(standalone.ask(SCORE, &at(last)).await.unwrap().is_empty(), "but with our flags not for long");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_eviction_comes_later_than_90_seconds_after_the_last_scrape() {
    let test = TestCluster::start().await;
    test.add_namespace([("openshift.io/cluster-monitoring".to_owned(), "true".to_owned())].into()).await;
    for number in 0..4 {
        test.add_pod(&format!("pod-{number}"), "hot").await;
    }
    let stand_in = test.stand_in(test.settings().await).await;
    // A dry run evicts in every cycle, because no pod moves.
    test.create_object().await;
    test.change(json!({"mode": "Predictive", "deschedulingIntervalSeconds": 20})).await;
    let evictions = || std::fs::read_to_string(stand_in.log()).unwrap_or_default().matches(DRY_RUN).count();
    let cycles =
        || std::fs::read_to_string(stand_in.log()).unwrap_or_default().matches("error getting node usage").count();
    let goes_on = async || {
        let before = evictions();
        eventually("evictions go on", async || (evictions() > before + 3).then_some(())).await;
    };
    let abandons = async |from: Instant| {
        let is_late = async || (from.elapsed() >= prometheus::OLDEST.div_f64(TIME_SCALE)).then_some(());
        eventually("90 s are over", is_late).await;
        let (evicted, abandoned) = (evictions(), cycles());
        eventually("two cycles are abandoned", async || (cycles() >= abandoned + 2).then_some(())).await;
        assert_eq!(evictions(), evicted, "an eviction by values that are older than 90 s");
    };

    goes_on().await;
    test.exporter.stop();
    abandons(Instant::now()).await;
    test.exporter.resume();
    goes_on().await;

    test.cluster.kill(Component::Prometheus).unwrap();
    abandons(Instant::now()).await;
    test.cluster.start(Component::Prometheus).await.unwrap();
    goes_on().await;

    // A halted Prometheus keeps its connections, and would answer old queries when it continues.
    test.cluster.pause(Component::Prometheus).unwrap();
    abandons(Instant::now()).await;
    test.cluster.resume(Component::Prometheus).unwrap();
    goes_on().await;
    assert!(test.prometheus.oldest() < prometheus::OLDEST.div_f64(TIME_SCALE));
}
