//! The soft-tainter: asks the scheduler to keep new pods away from busy nodes, by the same query and the same comparison
//! as the descheduler. Without it, what is moved from a busy node may land on another busy one.
//!
//! It goes beyond the original in one thing: its taints go when they are not wanted any more, with the KubeDescheduler
//! or when that becomes Predictive.

mod task;

use std::{collections::BTreeMap, future::Future, io, net::SocketAddr, time::Duration};

use advisor::kube_descheduler::Release;
use axum::{
    Router,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use balance::Bucket;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
    runtime::watcher::{Config, Event},
};
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
    task::{JoinHandle, JoinSet},
    time::{Instant, sleep_until, timeout},
};
use tracing::{debug, info, warn};

use self::task::{Seen, Task, readings};
use super::{
    Gauge, Orders, Unanswered, names,
    sample::percents,
    sight::{objects, only_ours},
    soft_taint::{is_tainted, retainted, wanted},
    web::Web,
};
use crate::{
    listing::{Change, Listing},
    watch as watches,
};

const BACKLOG: usize = 256;
const DEADLINE: Duration = Duration::from_secs(10);
/// How often a node that changes under our hands is tried again at once.
const TRIES: u32 = 3;
/// When taints that could not be taken away are tried again.
const CLEAN_AGAIN: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq)]
pub struct SoftTainterSettings {
    /// The release of the operator that is played.
    pub release: Release,
    pub prometheus_url: String,
    pub time_scale: f64,
    pub orders: Orders,
}

/// What the last cycle found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Findings {
    /// Whether it has seen the cluster, so that it acts.
    pub is_acting: bool,
    /// How many cycles there have been, cleaning included.
    pub cycles: u64,
    /// The bucket of each node; empty while nothing is classified.
    pub buckets: BTreeMap<String, Bucket>,
    /// Why the last cycle did nothing, or not all.
    pub problem: Option<String>,
}

/// A running soft-tainter. It stops when dropped; the taints stay.
#[derive(Debug)]
pub struct SoftTainter {
    findings: watch::Receiver<Findings>,
    task: JoinHandle<()>,
}

impl SoftTainter {
    /// Starts it. Needs a runtime.
    pub fn start(client: Client, settings: SoftTainterSettings) -> Result<SoftTainter, Unanswered> {
        let prometheus = Web::new(&settings.prometheus_url, None, DEADLINE)?;
        let (tell, findings) = watch::channel(Findings::default());
        let task = tokio::spawn(Tainter::new(client, prometheus, settings, tell).run());
        Ok(SoftTainter { findings, task })
    }

    pub fn findings(&self) -> watch::Receiver<Findings> {
        self.findings.clone()
    }
}

/// Runs a soft-tainter until told to stop. `GET /health` at `health` answers 503 until it knows the cluster, and 200 then.
pub async fn run(
    client: Client,
    settings: SoftTainterSettings,
    health: SocketAddr,
    until: impl Future<Output = ()>,
) -> io::Result<()> {
    let listener = TcpListener::bind(health).await?;
    info!(target: "lab", "soft-tainter: http://{}/health", listener.local_addr()?);
    let mut tainter = SoftTainter::start(client, settings).map_err(io::Error::other)?;
    let shown = tainter.findings();
    let page = move || std::future::ready(page(&shown.borrow()));
    tokio::select! {
        () = until => Ok(()),
        served = axum::serve(listener, Router::new().route("/health", get(page))) => served,
        _ = &mut tainter.task => Err(io::Error::other("the soft-tainter ended")),
    }
}

fn page(findings: &Findings) -> Response {
    let (code, status) = match findings.is_acting {
        true => (StatusCode::OK, "healthy"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "starting"),
    };
    let buckets: BTreeMap<&String, String> =
        findings.buckets.iter().map(|(node, bucket)| (node, bucket.to_string())).collect();
    let body = json!({"status": status, "cycles": findings.cycles, "nodes": buckets, "problem": findings.problem});
    (code, [(CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response()
}

impl Drop for SoftTainter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Debug)]
enum News {
    Object(Box<Event<DynamicObject>>),
    Node(Box<Event<Node>>),
}

struct Tainter {
    client: Client,
    prometheus: Web,
    settings: SoftTainterSettings,
    findings: watch::Sender<Findings>,
    news: mpsc::Receiver<News>,
    _watches: JoinSet<()>,
    listings: (Listing, Listing),
    listed: [bool; 2],
    task: Option<Task>,
    nodes: BTreeMap<String, Seen>,
}

impl Tainter {
    fn new(
        client: Client,
        prometheus: Web,
        settings: SoftTainterSettings,
        findings: watch::Sender<Findings>,
    ) -> Tainter {
        let (send, news) = mpsc::channel(BACKLOG);
        let mut watched = JoinSet::new();
        let mut task = None;
        match &settings.orders {
            Orders::KubeDescheduler => {
                watched.spawn(watches::watch(objects(&client), only_ours(), |_| {}, News::Object, send.clone()));
            }
            Orders::Policy(policy) => task = Task::of(policy),
        }
        watched.spawn(watches::watch(Api::all(client.clone()), Config::default(), trim, News::Node, send));
        Tainter {
            client,
            prometheus,
            listed: [settings.orders != Orders::KubeDescheduler, false],
            settings,
            findings,
            news,
            _watches: watched,
            listings: Default::default(),
            task,
            nodes: BTreeMap::new(),
        }
    }

    async fn run(mut self) {
        info!(target: "lab", "soft-tainter: started");
        let mut next = Instant::now();
        loop {
            // Without a task there is something to do only as long as a node is tainted.
            let is_needed = self.task.is_some() || self.nodes.values().any(|node| is_tainted(&node.taints));
            let is_needed = is_needed && self.listed == [true; 2];
            tokio::select! {
                news = self.news.recv() => match news {
                    Some(news) => {
                        if self.hear(news) {
                            next = Instant::now();
                        }
                    }
                    None => break,
                },
                () = sleep_until(next), if is_needed => {
                    self.cycle().await;
                    next = Instant::now() + self.task.as_ref().map_or(CLEAN_AGAIN, |task| task.interval);
                }
            }
        }
    }

    /// Returns whether what is to do has changed.
    fn hear(&mut self, news: News) -> bool {
        let (before, was_listed) = (self.task.clone(), self.listed);
        match news {
            News::Object(event) => {
                let (task, settings) = (&mut self.task, &self.settings);
                self.listed[0] |= self.listings.0.hear(*event, |change| match change {
                    Change::Is(object) => *task = Task::of_spec(&object.data["spec"], settings, task.take()),
                    Change::Gone(_) => *task = None,
                });
            }
            News::Node(event) => {
                let nodes = &mut self.nodes;
                self.listed[1] |= self.listings.1.hear(*event, |change| match change {
                    Change::Is(node) => {
                        nodes.insert(node.name_any(), Seen::of(&node));
                    }
                    Change::Gone((_, name)) => {
                        nodes.remove(&name);
                    }
                });
            }
        }
        if was_listed != self.listed {
            let is_acting = self.listed == [true; 2];
            self.findings.send_modify(|findings| findings.is_acting = is_acting);
        }
        before != self.task || was_listed != self.listed
    }

    async fn cycle(&mut self) {
        let buckets = match self.task.clone() {
            Some(task) => self.classify(&task.gauge).await,
            None => Ok(BTreeMap::new()),
        };
        let (buckets, mut problem) = match buckets {
            Ok(buckets) => (buckets, None),
            Err(problem) => {
                warn!(target: "lab", "soft-tainter: this cycle is abandoned: {problem}");
                // As it was: what is not known is not changed.
                self.findings.send_modify(|findings| {
                    findings.cycles += 1;
                    findings.problem = Some(problem);
                });
                return;
            }
        };
        let wanted = wanted(&buckets);
        for name in self.nodes.keys().cloned().collect::<Vec<_>>() {
            let keys = wanted.get(&name).copied().unwrap_or_default();
            if let Err(trouble) = self.taint(&name, keys).await {
                warn!(target: "lab", "soft-tainter: {trouble}");
                problem = Some(trouble);
            }
        }
        self.findings.send_modify(|findings| {
            *findings = Findings { is_acting: true, cycles: findings.cycles + 1, buckets, problem };
        });
    }

    async fn classify(&self, gauge: &Gauge) -> Result<BTreeMap<String, Bucket>, String> {
        let answer = self.prometheus.query(&gauge.query).await.map_err(|problem| problem.to_string())?;
        let percents = percents(&answer).map_err(|problem| problem.to_string())?;
        let buckets = gauge.thresholds.classify(&readings(&self.nodes, &percents, gauge)?);
        debug!(target: "lab", "soft-tainter: {buckets:?}");
        Ok(buckets)
    }

    async fn taint(&mut self, name: &str, keys: &[&str]) -> Result<(), String> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let params = PatchParams { field_manager: Some(names::SOFT_TAINTER.to_owned()), ..PatchParams::default() };
        let failed = |problem: String| format!("changing the taints of node {name}: {problem}");
        for _ in 0..TRIES {
            let Some(node) = self.nodes.get(name) else { return Ok(()) };
            let Some(taints) = retainted(&node.taints, keys) else { return Ok(()) };
            // The list is replaced as a whole, so nobody else may have changed it meanwhile.
            let patch =
                Patch::Merge(json!({"metadata": {"resourceVersion": node.version}, "spec": {"taints": taints}}));
            match timeout(DEADLINE, nodes.patch(name, &params, &patch)).await {
                Ok(Ok(node)) => {
                    info!(target: "lab", "soft-tainter: node {name} now has {keys:?}");
                    self.nodes.insert(name.to_owned(), Seen::of(&node));
                    return Ok(());
                }
                Ok(Err(kube::Error::Api(status))) if status.code == 404 => return Ok(()),
                Ok(Err(kube::Error::Api(status))) if status.code == 409 => {
                    let fresh = timeout(DEADLINE, nodes.get(name)).await.map_err(|_| failed("no answer".into()))?;
                    let fresh = fresh.map_err(|problem| failed(problem.to_string()))?;
                    self.nodes.insert(name.to_owned(), Seen::of(&fresh));
                }
                Ok(Err(problem)) => return Err(failed(problem.to_string())),
                Err(_) => return Err(failed(format!("no answer within {} s", DEADLINE.as_secs()))),
            }
        }
        Err(failed("it changed again and again; the next cycle tries again".into()))
    }
}

/// Annotations and images are of no interest.
fn trim(node: &mut Node) {
    node.metadata.annotations = None;
    if let Some(status) = &mut node.status {
        status.images = None;
    }
}
