//! Loads of VMs and nodes from Prometheus: which metrics there are, and their samples, in queries of a bounded size.

use std::{
    collections::{BTreeSet, HashMap},
    io::Write,
};

use kube_io::prometheus::{PrometheusClient, PrometheusClock, Series, matrix};
use sim::import::{Grid, Import, ImportedVm, Recording};

use super::{
    metrics::{Form, Found, Metric, Origin, Quantity, candidates},
    objects::{FoundNode, FoundVm},
};
use crate::Error;

/// The most VMs, and the longest list of their names, in one query.
const BATCH: usize = 100;
const LONGEST_NAMES: usize = 3_000;
/// The most samples of an answer. Prometheus allows 11,000 for each series.
const MOST_SAMPLES: usize = 250_000;
const MOST_OF_SERIES: usize = 10_000;
/// A rate needs this many scrapes.
const SCRAPES: f64 = 4.0;
/// How far back the time between scrapes is looked for.
const RECENT: u64 = 300;

/// What was noticed while loads were read.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadNotes {
    /// How far the clock of Prometheus is ahead of this machine's.
    pub clock_ahead_seconds: Option<f64>,
    pub scrape_interval_seconds: Option<f64>,
    /// Over how long rates are taken.
    pub window_seconds: Option<u64>,
    /// How often counters of VMs began anew. None if that could not be counted.
    pub resets: Option<u64>,
    /// VMs or pods that were measured and are gone.
    pub gone: usize,
    /// Instances that were measured and are none of the nodes.
    pub other_instances: Vec<String>,
    pub queries: usize,
}

/// Names by which samples are matched to nodes and VMs.
#[derive(Debug)]
pub(super) struct Keys {
    /// By namespace and name.
    vms: HashMap<(String, String), usize>,
    pods: HashMap<(String, String), usize>,
    /// By VM: its name, and the name of its pod.
    names: Vec<(String, Option<String>)>,
    nodes: HashMap<String, usize>,
    /// By node: its cores, and its bytes of memory.
    cores: Vec<f64>,
    memory: Vec<f64>,
    /// Whether pods stand for VMs.
    is_pods: bool,
    is_stated: bool,
}

impl Keys {
    pub(super) fn new(nodes: &[FoundNode], vms: &[FoundVm]) -> Self {
        let mut by_name: HashMap<String, usize> = HashMap::new();
        for (number, node) in nodes.iter().enumerate() {
            for name in node.addresses.iter().chain([&node.name]) {
                by_name.insert(name.clone(), number);
            }
        }
        let key = |namespace: &str, name: &str| (namespace.to_owned(), name.to_owned());
        let numbered = || vms.iter().enumerate();
        let of_pod = |(number, vm): (usize, &FoundVm)| vm.pod.as_ref().map(|pod| (key(&vm.namespace, pod), number));
        Keys {
            vms: numbered().map(|(number, vm)| (key(&vm.namespace, &vm.name), number)).collect(),
            pods: numbered().filter_map(of_pod).collect(),
            names: vms.iter().map(|vm| (vm.name.clone(), vm.pod.clone())).collect(),
            nodes: by_name,
            cores: nodes.iter().map(|node| node.group.cores).collect(),
            memory: nodes.iter().map(|node| node.group.memory.0 as f64).collect(),
            is_pods: vms.iter().all(|vm| vm.pod.as_ref() == Some(&vm.name)) && !vms.is_empty(),
            is_stated: vms.iter().any(|vm| vm.vm.stated.is_some()),
        }
    }

    pub(super) fn pod(&self, namespace: &str, name: &str) -> Option<usize> {
        self.pods.get(&(namespace.to_owned(), name.to_owned())).copied()
    }

    /// The node that a label names, with or without a port.
    pub(super) fn node(&self, label: &str) -> Option<usize> {
        let without_port = label.rsplit_once(':').map(|(host, _)| host.trim_matches(['[', ']']));
        self.nodes.get(label).or_else(|| self.nodes.get(without_port?)).copied()
    }

    pub(super) fn cores(&self, node: usize) -> f64 {
        self.cores[node]
    }

    pub(super) fn memory(&self, node: usize) -> f64 {
        self.memory[node]
    }

    /// Namespace and name of what a series is about.
    fn name_of(metric: &Metric, label: impl Fn(&str) -> Option<String>) -> Option<(String, String)> {
        let namespace = label("exported_namespace").or_else(|| label("namespace"))?;
        Some((namespace, label(metric.name_label())?))
    }

    fn vm(&self, metric: &Metric, name: &(String, String)) -> Option<usize> {
        if metric.is_of_pods() { self.pods.get(name) } else { self.vms.get(name) }.copied()
    }

    /// The names of these VMs in a metric.
    fn names_of(&self, metric: &Metric, vms: std::ops::Range<usize>) -> Vec<&str> {
        let of = self.names[vms].iter();
        of.filter_map(|(name, pod)| if metric.is_of_pods() { pod.as_deref() } else { Some(name.as_str()) }).collect()
    }

    /// What a quantity is called where it has no metric.
    pub(super) fn without(&self, quantity: Quantity, node_known: bool) -> Found {
        let (origin, metric) = match quantity {
            Quantity::VmCpu | Quantity::VmMemory if self.is_stated => {
                (Origin::Guessed, "what the VirtualMachine states")
            }
            Quantity::VmCpu if node_known => (Origin::Guessed, "use of the node, divided among its VMs by cores"),
            Quantity::VmMemory if node_known => (Origin::Guessed, "use of the node, divided among its VMs by memory"),
            Quantity::VmCpu | Quantity::VmMemory => {
                (Origin::Missing, "half of the cores and 80 % of the memory are assumed")
            }
            Quantity::NodeCpu | Quantity::NodeMemory => (Origin::Missing, "nodes use what their VMs use"),
            Quantity::NodeCpuPressure | Quantity::NodeMemoryPressure => {
                (Origin::Guessed, "the simulator's model of pressure, from use")
            }
        };
        Found { quantity, origin, metric: metric.to_owned(), series: 0 }
    }
}

struct Reader<'a> {
    client: &'a PrometheusClient,
    keys: &'a Keys,
    grid: Grid,
    window: u64,
    notes: LoadNotes,
}

pub(super) async fn from_prometheus<W: Write>(
    client: &PrometheusClient,
    keys: &Keys,
    grid: Grid,
    clock: Option<PrometheusClock>,
    vms: Vec<ImportedVm>,
    import: &mut Import<W>,
    mut progress: impl FnMut(usize, usize),
) -> Result<(Vec<Found>, LoadNotes), Error> {
    let notes = LoadNotes { clock_ahead_seconds: clock.map(|clock| clock.ahead_seconds), ..LoadNotes::default() };
    let mut reader = Reader { client, keys, grid, window: grid.step, notes };
    let mut found = Vec::new();
    let mut of_vms = [None, None];
    for (kind, quantity) in Quantity::VM.into_iter().enumerate() {
        of_vms[kind] = reader.discover(quantity, &mut found).await?;
    }
    let mut of_nodes = [None; 4];
    for (signal, quantity) in Quantity::NODE.into_iter().enumerate() {
        of_nodes[signal] = reader.discover(quantity, &mut found).await?;
    }
    for (kind, quantity) in Quantity::VM.into_iter().enumerate() {
        if of_vms[kind].is_none() {
            found.push(keys.without(quantity, of_nodes[kind * 2].is_some()));
        }
    }
    for (signal, quantity) in Quantity::NODE.into_iter().enumerate() {
        if of_nodes[signal].is_none() {
            found.push(keys.without(quantity, false));
        }
    }
    found.sort_by_key(|found| Quantity::VM.iter().chain(&Quantity::NODE).position(|known| *known == found.quantity));
    let gone = reader.gone(of_vms[0], of_nodes[0]).await?;
    reader.vms(of_vms, vms, import, &mut progress).await?;
    reader.gone_vms(of_vms, &gone, import).await?;
    reader.nodes(of_nodes, import).await?;
    Ok((found, reader.notes))
}

impl Reader<'_> {
    /// The first metric of a quantity that has series now.
    async fn discover(&mut self, quantity: Quantity, found: &mut Vec<Found>) -> Result<Option<Metric>, Error> {
        for metric in candidates(quantity, self.keys.is_pods) {
            self.notes.queries += 1;
            let count = self.client.number(&format!("count({})", metric.selector(&[])), self.grid.end).await;
            if let Some(count) = count.map_err(Error::Prometheus)?.filter(|count| *count > 0.0) {
                let (origin, series) = (Origin::Found, count as usize);
                found.push(Found { quantity, origin, metric: metric.name.to_owned(), series });
                return Ok(Some(*metric));
            }
        }
        Ok(None)
    }

    /// VMs that were measured in the span and are gone, by namespace and name. Measures the time between scrapes, too.
    async fn gone(&mut self, of_vms: Option<Metric>, of_nodes: Option<Metric>) -> Result<Vec<(String, String)>, Error> {
        let Some(metric) = of_vms.or(of_nodes) else { return Ok(Vec::new()) };
        self.notes.queries += 2;
        let series = self.client.series(&metric.selector(&[]), self.grid.start(), self.grid.end).await;
        let series = series.map_err(Error::Prometheus)?;
        if let Some(labels) = series.last() {
            let matchers = labels.iter().filter(|(name, _)| *name != "__name__");
            let matchers: Vec<String> = matchers.map(|(name, value)| format!("{name}={value:?}")).collect();
            let query = format!("{}{{{}}}[{RECENT}s]", metric.name, matchers.join(","));
            let answer = self.client.raw(&query, self.grid.end).await.map_err(Error::Prometheus)?;
            let recent = matrix(&answer).map_err(|problem| self.unreadable(&query, &problem))?;
            if let Some(interval) = recent.first().and_then(scrape_interval) {
                self.notes.scrape_interval_seconds = Some(interval);
                self.window = self.window.max((interval * SCRAPES).ceil() as u64);
            }
        }
        self.notes.window_seconds = Some(self.window);
        // Pods that stand for no VM are measured by the same metric, and are not gone.
        if of_vms.is_none() || self.keys.is_pods {
            return Ok(Vec::new());
        }
        let names: BTreeSet<_> =
            series.iter().filter_map(|labels| Keys::name_of(&metric, |label| labels.get(label).cloned())).collect();
        let gone: Vec<_> = names.into_iter().filter(|name| self.keys.vm(&metric, name).is_none()).collect();
        self.notes.gone = gone.len();
        Ok(gone)
    }

    async fn vms<W: Write>(
        &mut self,
        metrics: [Option<Metric>; 2],
        vms: Vec<ImportedVm>,
        import: &mut Import<W>,
        progress: &mut impl FnMut(usize, usize),
    ) -> Result<(), Error> {
        let all = vms.len();
        let mut waiting = vms.into_iter();
        let mut resets = Some(0);
        let mut done = 0;
        while done < all {
            let count = self.batch(done..all);
            let batch: Vec<ImportedVm> = waiting.by_ref().take(count).collect();
            let mut recordings: Vec<[Recording; 2]> =
                batch.iter().map(|_| [0, 1].map(|_| Recording::new(self.grid.count))).collect();
            for (kind, metric) in metrics.iter().enumerate() {
                let Some(metric) = metric else { continue };
                let keys = self.keys;
                let names = keys.names_of(metric, done..done + count);
                if names.is_empty() {
                    continue;
                }
                let numbered = |name: &(String, String)| {
                    keys.vm(metric, name).and_then(|vm| vm.checked_sub(done)).filter(|at| *at < count)
                };
                self.samples(metric, &names, numbered, kind, &mut recordings).await?;
                if metric.form == Form::Rate {
                    let found = self.resets(metric, &names).await;
                    resets = resets.zip(found).map(|(before, found)| before + found);
                }
            }
            for (vm, recordings) in batch.into_iter().zip(recordings) {
                import.vm(vm, recordings).map_err(Error::Write)?;
            }
            done += count;
            progress(done, all);
        }
        self.notes.resets = resets.filter(|_| metrics[0].is_some());
        Ok(())
    }

    /// How many of these VMs go into one query.
    fn batch(&self, vms: std::ops::Range<usize>) -> usize {
        let mut length = 0;
        let fits = |vm: &usize| {
            let (name, pod) = &self.keys.names[*vm];
            length += name.len().max(pod.as_ref().map_or(0, String::len)) + 1;
            length <= LONGEST_NAMES
        };
        vms.take(BATCH).take_while(fits).count().max(1)
    }

    /// Reads the samples of these names into the recordings of the numbers that they have.
    async fn samples(
        &mut self,
        metric: &Metric,
        names: &[&str],
        number: impl Fn(&(String, String)) -> Option<usize>,
        kind: usize,
        recordings: &mut [[Recording; 2]],
    ) -> Result<(), Error> {
        let query = metric.of_vms(names, self.window);
        for (start, end) in chunks(self.grid, names.len()) {
            self.notes.queries += 1;
            let answer = self.client.range(&query, start, end, self.grid.step).await.map_err(Error::Prometheus)?;
            for series in matrix(&answer).map_err(|problem| self.unreadable(&query, &problem))? {
                let name = Keys::name_of(metric, |label| series.label(label).map(str::to_owned));
                let Some(at) = name.and_then(|name| number(&name)) else { continue };
                let node = series.label("node").and_then(|node| self.keys.node(node));
                let recording = &mut recordings[at][kind];
                for (time, value) in series.samples() {
                    if let Some(position) = self.grid.position(time) {
                        match metric.form {
                            Form::Rate => recording.add(position, value, node),
                            _ => recording.put(position, value, node),
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn unreadable(&self, query: &str, problem: &str) -> Error {
        Error::Prometheus(self.client.failed(query, problem))
    }

    /// How often the counters of these names began anew. A Prometheus that cannot count that is no reason to stop.
    async fn resets(&mut self, metric: &Metric, names: &[&str]) -> Option<u64> {
        self.notes.queries += 1;
        let span = (self.grid.end - self.grid.start()).max(self.window);
        let query = format!("sum(resets({}[{span}s]))", metric.selector(names));
        self.client.number(&query, self.grid.end).await.ok().map(|found| found.unwrap_or(0.0) as u64)
    }

    /// What VMs used that are gone is no use of the nodes themselves.
    async fn gone_vms<W: Write>(
        &mut self,
        metrics: [Option<Metric>; 2],
        gone: &[(String, String)],
        import: &mut Import<W>,
    ) -> Result<(), Error> {
        for batch in gone.chunks(BATCH / 4) {
            let mut recordings: Vec<[Recording; 2]> =
                batch.iter().map(|_| [0, 1].map(|_| Recording::new(self.grid.count))).collect();
            for (kind, metric) in metrics.iter().enumerate() {
                let Some(metric) = metric else { continue };
                let names: Vec<&str> = batch.iter().map(|(_, name)| name.as_str()).collect();
                let number = |name: &(String, String)| batch.iter().position(|known| known == name);
                self.samples(metric, &names, number, kind, &mut recordings).await?;
            }
            recordings.iter().for_each(|recordings| import.gone(recordings));
        }
        Ok(())
    }

    async fn nodes<W: Write>(&mut self, metrics: [Option<Metric>; 4], import: &mut Import<W>) -> Result<(), Error> {
        let mut others = BTreeSet::new();
        for (signal, metric) in metrics.iter().enumerate() {
            let Some(metric) = metric else { continue };
            let query = metric.of_nodes(self.window);
            for (start, end) in chunks(self.grid, self.keys.memory.len()) {
                self.notes.queries += 1;
                let answer = self.client.range(&query, start, end, self.grid.step).await.map_err(Error::Prometheus)?;
                for series in matrix(&answer).map_err(|problem| self.unreadable(&query, &problem))? {
                    let label = |name: &str| series.label(name).and_then(|label| self.keys.node(label));
                    let Some(node) = label("node").or_else(|| label("nodename")).or_else(|| label("instance")) else {
                        others.extend(series.label("instance").map(str::to_owned));
                        continue;
                    };
                    self.node_samples(metric, node, &series, import.signal(node, signal));
                }
            }
        }
        self.notes.other_instances = others.into_iter().collect();
        Ok(())
    }

    fn node_samples(&self, metric: &Metric, node: usize, series: &Series<'_>, recording: Option<&mut Recording>) {
        let Some(recording) = recording else { return };
        for (time, value) in series.samples() {
            let value = match metric.form {
                Form::NotAvailable => (1.0 - value / self.keys.memory(node)).max(0.0),
                _ => value.max(0.0),
            };
            if let Some(position) = self.grid.position(time) {
                recording.put(position, value, None);
            }
        }
    }
}

/// First and last times of queries that cover the grid, for this many series.
fn chunks(grid: Grid, series: usize) -> impl Iterator<Item = (u64, u64)> {
    let points = (MOST_SAMPLES / series.max(1)).clamp(1, MOST_OF_SERIES);
    (0..grid.count).step_by(points).map(move |first| {
        let last = (first + points).min(grid.count) - 1;
        let at = |number: usize| grid.start() + number as u64 * grid.step;
        (at(first), at(last))
    })
}

/// The median time between two scrapes.
fn scrape_interval(series: &Series<'_>) -> Option<f64> {
    let times: Vec<f64> = series.samples().map(|(time, _)| time).collect();
    let mut between: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).filter(|time| *time > 0.0).collect();
    between.sort_by(f64::total_cmp);
    between.get(between.len() / 2).copied()
}
