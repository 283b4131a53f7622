//! `rebalance-lab import`: makes a scenario from a live cluster.

#[cfg(test)]
mod tests;

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use flate2::{Compression, write::GzEncoder};
use kube::{Client, Config};
use kube_io::{Login, connect};
use lab::import::{Loads, PrometheusClient, Report, Request, Selectors, identity, import, list, text};
use process::cluster::Selection;
use sim::{MOST_STEPS, import::Order, units::Span};
use terminal::{Terminal, print};

use crate::{lab_files::LabFiles, status::runtime};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file to write, compressed by gzip unless its name ends in .json
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The Prometheus with the loads, such as https://thanos-querier.example.com [default: one snapshot of metrics.k8s.io]
    #[arg(long, value_name = "URL")]
    prometheus: Option<String>,
    /// A file with a token for Prometheus [default: the token of the kubeconfig, if the URL is one of https]
    #[arg(long, value_name = "FILE", requires = "prometheus")]
    prometheus_token_file: Option<PathBuf>,
    /// A file with the CA of Prometheus, in PEM [default: those that the system trusts]
    #[arg(long, value_name = "FILE", requires = "prometheus")]
    prometheus_ca: Option<PathBuf>,
    /// How much of the past to read
    #[arg(long, value_name = "TIME", default_value = "7d")]
    span: Span,
    /// The time between two samples
    #[arg(long, value_name = "TIME", default_value = "5m")]
    step: Span,
    /// Begin with the load of the start of the span and end with it, instead of beginning now and repeating the span
    #[arg(long)]
    replay: bool,
    /// The longest step of the scenario
    #[arg(long, value_name = "TIME", default_value = "1m")]
    scenario_step: Span,
    /// The name of the scenario
    #[arg(long, default_value = "imported")]
    name: String,
    /// Replace all names, always by the same ones for the same cluster, and drop labels that no VM asks for
    #[arg(long)]
    anonymize: bool,
    /// The nodes to read, as a label selector [default: all but those of the control plane that take no VMs]
    #[arg(long, value_name = "SELECTOR")]
    nodes: Option<String>,
    /// Pods that stand for VMs, as a label selector, where KubeVirt is not served
    #[arg(long, value_name = "SELECTOR")]
    pods: Option<String>,
    /// The kubeconfig to use [default: that of KUBECONFIG, or the pod's own cluster]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use
    #[arg(long)]
    context: Option<String>,
    /// Import a running lab of this name with its Prometheus; times are those of the lab
    #[arg(long, value_name = "NAME", conflicts_with_all = ["prometheus", "kubeconfig", "context"])]
    lab: Option<String>,
}

/// Where to read from.
struct Sources {
    client: Client,
    prometheus: Option<PrometheusClient>,
    time_scale: f64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    print(&execute(args, Terminal::of_this_process())?)
}

/// Writes the scenario, and returns what there is to tell.
fn execute(args: &Args, terminal: Terminal) -> anyhow::Result<String> {
    if args.step.0 == 0 || args.scenario_step.0 == 0 {
        bail!("0s is not a length of time above 0: --step and --scenario-step need one");
    }
    if args.step.0 > args.span.0 {
        bail!("--step {} is longer than --span {}", args.step, args.span);
    }
    let steps = args.span.0 / args.scenario_step.0;
    if steps > MOST_STEPS {
        bail!("--span {} has {steps} steps of {}: a scenario has at most {MOST_STEPS}", args.span, args.scenario_step);
    }
    let report = runtime()?.block_on(perform(args, terminal))?;
    let size = std::fs::metadata(&args.output).map_or(0, |file| file.len());
    let file = args.output.display();
    Ok(format!(
        "{}\nWritten to {file} ({:.1} MB): try `rebalance-lab sim run {file}`\n",
        text(&report, terminal.width),
        size as f64 / 1e6
    ))
}

async fn perform(args: &Args, terminal: Terminal) -> anyhow::Result<Report> {
    let sources = sources(args).await?;
    let client = &sources.client;
    let anonymize = if args.anonymize {
        let unknown = "--anonymize knows the cluster by the UID of the namespace kube-system, and it cannot be read";
        Some(identity(client).await.context(unknown)?)
    } else {
        None
    };
    let request = Request {
        name: args.name.clone(),
        span: args.span,
        step: args.step,
        scenario_step: args.scenario_step,
        order: if args.replay { Order::Replay } else { Order::Forecast },
        anonymize,
        time_scale: sources.time_scale,
    };
    let objects = list(client, &Selectors { nodes: args.nodes.clone(), pods: args.pods.clone() }).await?;
    let loads = match &sources.prometheus {
        Some(prometheus) => Loads::Prometheus(prometheus),
        None => Loads::Snapshot(client),
    };
    let partial = Partial::new(&args.output)?;
    let progress = |done: usize, all: usize| {
        if terminal.progress {
            eprint!("\r{done} of {all} VMs{}", if done == all { "\r\x1b[K" } else { "" });
        }
    };
    if args.output.extension().is_some_and(|extension| extension == "json") {
        let (mut out, report) = import(objects, loads, &request, BufWriter::new(partial.create()?), progress).await?;
        out.flush().context("writing the scenario")?;
        partial.keep()?;
        return Ok(report);
    }
    let out = BufWriter::new(GzEncoder::new(BufWriter::new(partial.create()?), Compression::default()));
    let (out, report) = import(objects, loads, &request, out, progress).await?;
    let packed = out.into_inner().map_err(io::IntoInnerError::into_error).and_then(GzEncoder::finish);
    packed.and_then(|mut file| file.flush()).context("writing the scenario")?;
    partial.keep()?;
    Ok(report)
}

async fn sources(args: &Args) -> anyhow::Result<Sources> {
    if let Some(name) = &args.lab {
        let lab = LabFiles::of_this_user().find(name)?;
        let prometheus = PrometheusClient::new(&lab.info.prometheus, Default::default())?;
        let client = lab.client().await?;
        return Ok(Sources { client, prometheus: Some(prometheus), time_scale: lab.info.time_scale });
    }
    let selection =
        Selection { kubeconfig: args.kubeconfig.clone(), context: args.context.clone(), ..Selection::default() };
    let config = selection.config().await?;
    let prometheus = args.prometheus.as_deref().map(|url| prometheus(args, url, &config)).transpose()?;
    let client = connect::retrying_client(config, lab::COMPONENT).context("making a client for the cluster")?;
    Ok(Sources { client, prometheus, time_scale: 1.0 })
}

fn prometheus(args: &Args, url: &str, config: &Config) -> anyhow::Result<PrometheusClient> {
    let (token, ca) = (args.prometheus_token_file.as_deref(), args.prometheus_ca.as_deref());
    Ok(PrometheusClient::new(url, Login::read(url, &config.auth_info, token, ca)?)?)
}

/// A file that gets its name when it is complete, and is removed otherwise.
struct Partial {
    path: PathBuf,
    name: PathBuf,
}

impl Partial {
    fn new(name: &Path) -> anyhow::Result<Self> {
        let file = name.file_name().with_context(|| format!("{} is no name of a file", name.display()))?;
        let mut partial = file.to_owned();
        partial.push(".partial");
        Ok(Partial { path: name.with_file_name(partial), name: name.to_owned() })
    }

    fn create(&self) -> anyhow::Result<File> {
        File::create(&self.path).with_context(|| format!("creating {}", self.path.display()))
    }

    fn keep(&self) -> anyhow::Result<()> {
        std::fs::rename(&self.path, &self.name).with_context(|| format!("writing {}", self.name.display()))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // It is gone if it was kept.
        let _ = std::fs::remove_file(&self.path);
    }
}
