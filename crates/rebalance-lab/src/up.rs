//! `rebalance-lab up`: the whole lab, until somebody ends it.

use std::{
    io,
    path::PathBuf,
    time::{Duration, Instant},
};

use advisor::kube_descheduler::Release;
use anstyle::{AnsiColor, Style};
use anyhow::Context;
use balance::{Algorithm, Mode, promql, promql::Source};
use lab::up::{Descheduling, Lab, Options, PartLogs, Placement, Ports, Ready};
use sim::units::Bytes;
use tokio::signal::unix::{SignalKind, signal};
use tracing::Metadata;
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

use crate::{
    part::{release, time_scale},
    record::{Claim, Name, Records, Running, option},
};

const DONE: Style = AnsiColor::Green.on_default().bold();
const TITLE: Style = Style::new().bold();
/// What a program build under way may take to notice that we are done.
const GRACE: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many nodes there are
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    nodes: u32,
    /// The cores of each node
    #[arg(long, value_name = "NUMBER", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1024))]
    cores: u32,
    /// The memory of each node
    #[arg(long, value_name = "SIZE", default_value = "128Gi")]
    memory: Bytes,
    /// How many VMs to begin with; they are loaded unevenly, so that there is something to balance
    #[arg(long, value_name = "NUMBER", default_value_t = 50)]
    vms: usize,
    /// Begin without VMs
    #[arg(long, conflicts_with = "vms")]
    empty: bool,
    /// By which algorithm nodes are scored: a slug as `rebalance-lab sim algorithms` lists them, or k3
    #[arg(long, default_value = "k3", value_parser = algorithm)]
    algorithm: Algorithm,
    /// How far from the average a node is under- or over-utilized: low, medium, high, asym-low, asym-medium, asym-high
    #[arg(long, value_name = "MODE", default_value = "low")]
    thresholds: Mode,
    /// What the scores are made of: gauges, node-exporter or openshift
    #[arg(long, value_name = "SOURCE", default_value = Source::default().slug())]
    signals: Source,
    /// Run this DeschedulerPolicy as it is
    #[arg(long, value_name = "FILE", conflicts_with_all = ["algorithm", "thresholds"])]
    policy: Option<PathBuf>,
    /// Leave the descheduler to the advisor, and bring what that works with: its kinds and those of others, a platform
    /// at rest, and a stand-in for the machine config operator
    #[arg(long, conflicts_with_all = ["algorithm", "thresholds", "policy"])]
    with_advisor: bool,
    /// Which OpenShift release's descheduler operator is played: 4.17, 4.18, 4.19, 4.20, 4.21 or 5.1
    #[arg(long, value_name = "RELEASE", default_value_t = Release::NEWEST, value_parser = release)]
    descheduler_release: Release,
    /// Do not mark busy nodes for the scheduler
    #[arg(long)]
    no_soft_tainter: bool,
    /// How many times faster than the clock everything goes
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = time_scale)]
    time_scale: f64,
    /// Listen on any free ports instead of 9090 (Prometheus), 8000 (exporter) and 8443 (descheduler)
    #[arg(long)]
    free_ports: bool,
    /// What our parts log: error, warn, info, debug or trace, or a filter such as `info,lab=debug`
    #[arg(long, value_name = "FILTER", env = "LOG_LEVEL", default_value = "info")]
    log_level: String,
    #[command(flatten)]
    name: Name,
}

impl Args {
    fn options(&self, logs: PartLogs) -> anyhow::Result<Options> {
        let descheduling = match &self.policy {
            Some(file) => {
                let text = std::fs::read_to_string(file);
                Descheduling::Policy(text.with_context(|| format!("reading the policy {}", file.display()))?)
            }
            None if self.with_advisor => Descheduling::Awaited,
            None => Descheduling::By { algorithm: self.algorithm, mode: self.thresholds },
        };
        Ok(Options {
            nodes: self.nodes,
            cores: self.cores,
            memory_bytes: self.memory.0,
            descheduling,
            descheduler_release: self.descheduler_release,
            soft_tainter: !self.no_soft_tainter,
            signals: self.signals,
            time_scale: self.time_scale,
            ports: if self.free_ports { Ports::default() } else { Ports::USUAL },
            advisor: self.with_advisor,
            logs,
            ..Options::default()
        })
    }
}

/// Gives each part's words to its own log.
struct Router(PartLogs);

struct Line {
    logs: PartLogs,
    module: Option<String>,
}

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.logs.write(self.module.as_deref(), bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Router {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { logs: self.0.clone(), module: None }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Line {
        Line { logs: self.0.clone(), module: metadata.module_path().map(ToOwned::to_owned) }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let logs = PartLogs::default();
    let options = args.options(logs.clone())?;
    let guests = if args.empty { Placement::default() } else { Placement::sample(args.vms, &options)? };
    let filter = EnvFilter::try_new(&args.log_level).with_context(|| format!("--log-level {}", args.log_level))?;
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(Router(logs)).with_ansi(false).init();
    let claim = Records::of_this_user().claim(&args.name.name)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting")?;
    let result = runtime.block_on(live(args, options, &guests, &claim));
    runtime.shutdown_timeout(GRACE);
    result
}

/// From the first part to the last file.
async fn live(args: &Args, options: Options, guests: &Placement, claim: &Claim) -> anyhow::Result<()> {
    let mut end = End::new()?;
    let lab = tokio::select! {
        lab = start(args, options, guests) => lab?,
        () = end.wait() => {
            say("Ended before it was up.");
            return Ok(());
        }
    };
    let running = running(args, &lab).await?;
    say(&summary(args, &lab, &running)?);
    claim.publish(running)?;
    end.wait().await;
    say("Ending the lab ...");
    tokio::select! {
        () = lab.shutdown() => {}
        // Somebody is in a hurry: dropping ends everything, too.
        () = end.wait() => {}
    }
    say("The lab is down.");
    Ok(())
}

async fn start(args: &Args, options: Options, guests: &Placement) -> anyhow::Result<Lab> {
    say("Starting the control plane; the first time, its programs are built, which takes minutes.");
    let began = Instant::now();
    let ready = |part: &str, place: &str| {
        let line = format!("{DONE}✔{DONE:#} {part:<24}  {place:<40}  {:5.1} s", began.elapsed().as_secs_f64());
        say(line.trim_end());
    };
    // The descheduler gets its orders when the VMs are where they shall start.
    let orders = match options.descheduling {
        Descheduling::By { algorithm, mode } => Some((algorithm, mode)),
        Descheduling::Policy(_) | Descheduling::Awaited => None,
    };
    let descheduling = if orders.is_some() { Descheduling::Awaited } else { options.descheduling };
    let options = Options { descheduling, ..options };
    let lab = Lab::start(options, |Ready { part, place }| ready(part, &place)).await?;
    if !args.empty {
        guests.settle(lab.client()).await?;
        ready("VMs", &format!("{} running, unevenly loaded", guests.0.len()));
    }
    if let Some((algorithm, mode)) = orders {
        lab.order(&algorithm, mode).await?;
        ready("KubeDescheduler", &format!("{}, {}", algorithm.slug(), mode.slug()));
    }
    Ok(lab)
}

async fn running(args: &Args, lab: &Lab) -> anyhow::Result<Running> {
    Ok(Running {
        kubeconfig: lab.kubeconfig().await?,
        prometheus: lab.prometheus_url()?,
        time_scale: args.time_scale,
        parts: lab.parts()?,
        policy: lab.policy(),
        journal: lab.journal(),
    })
}

/// Where things are, and what to do next.
fn summary(args: &Args, lab: &Lab, running: &Running) -> anyhow::Result<String> {
    let prometheus = lab.prometheus_url()?;
    let descheduler = lab.descheduler_url().unwrap_or_default();
    Ok(guide(&Places {
        name: &args.name.name,
        kubeconfig: &running.kubeconfig.display().to_string(),
        prometheus: &prometheus,
        exporter: &lab.exporter_url(),
        descheduler: &descheduler,
        score: &promql::node_series(&args.algorithm),
        advisor: args.with_advisor,
    }))
}

struct Places<'a> {
    name: &'a str,
    kubeconfig: &'a str,
    prometheus: &'a str,
    exporter: &'a str,
    descheduler: &'a str,
    score: &'a str,
    advisor: bool,
}

/// The commands of the original lab's guide, with ours where it asks for pods that are processes here.
fn guide(places: &Places<'_>) -> String {
    let Places { name, kubeconfig, prometheus, exporter, descheduler, score, advisor } = places;
    let which = option(name);
    let advice = if *advisor {
        format!(
            "
{TITLE}The advisor{TITLE:#} brings the KubeDescheduler:
  virt-advisor operator                                  in another terminal, with that KUBECONFIG
  kubectl patch virtplatformconfig load-aware-rebalancing --type=merge -p '{{\"spec\": {{\"action\": \"DryRun\"}}}}'
"
        )
    } else {
        String::new()
    };
    format!(
        "
{TITLE}The lab is up.{TITLE:#} It ends with Ctrl-C, or with `rebalance-lab down{which}`.

  Prometheus           {prometheus}
  Metrics exporter     {exporter}
  Descheduler metrics  {descheduler}/metrics
  kubectl              export KUBECONFIG={kubeconfig}
{advice}
{TITLE}Watch it{TITLE:#}
  rebalance-lab watch{which}                                    parts, nodes and migrations, live
  rebalance-lab status{which}                                   the same, once; -o json for programs
  rebalance-lab logs{which} descheduler -f                      what the descheduler does
  rebalance-lab logs{which} descheduler | grep -i evict         recent evictions
  rebalance-lab logs{which} eviction-webhook -f                 what becomes of them; also vm-controller, metrics-exporter

{TITLE}VMs and pods{TITLE:#}
  kubectl get vm -o wide                                 VMs with their nodes; -w to watch
  kubectl describe vm <vm-name>
  kubectl get pods -l app=virt-launcher                  the pods that play them
  kubectl get pod <pod-name> -o jsonpath='{{.metadata.annotations}}'
  kubectl get nodes -l kubevirt.io/schedulable=true      the nodes that take part

{TITLE}Change the load{TITLE:#}
  rebalance-lab load{which} --cpu 0.9 --vms 'vm-00*'            of some VMs, now
  rebalance-lab load{which} FILE                                by a scenario, as time goes by

{TITLE}Metrics{TITLE:#}
  curl {prometheus}/-/healthy
  curl {exporter}/health
  curl {prometheus}/api/v1/targets
  curl {prometheus}/api/v1/rules
  curl '{prometheus}/api/v1/query?query={score}'
"
    )
}

/// Nobody has to listen.
fn say(text: &str) {
    use io::Write;
    let _ = writeln!(anstream::stdout(), "{text}");
}

/// The ways in which a lab is asked to end.
struct End([tokio::signal::unix::Signal; 3]);

impl End {
    fn new() -> anyhow::Result<End> {
        let listen = |kind| signal(kind).context("listening for signals");
        Ok(End([listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?, listen(SignalKind::hangup())?]))
    }

    async fn wait(&mut self) {
        let [terminate, interrupt, hangup] = &mut self.0;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// One for which there are rules.
fn algorithm(text: &str) -> Result<Algorithm, String> {
    let found: Algorithm = text.parse().map_err(|error: balance::Unknown| error.to_string())?;
    let known = Algorithm::all();
    known.contains(&found).then_some(found).ok_or_else(|| {
        let slugs: Vec<String> = known.iter().map(Algorithm::slug).collect();
        format!("Prometheus has no rule for it; it has for {}", slugs.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn options(line: &str) -> anyhow::Result<Options> {
        let line = format!("up {line}");
        Line::try_parse_from(line.split_whitespace())?.args.options(PartLogs::default())
    }

    #[test]
    fn without_options_the_lab_is_the_usual_one() {
        let (found, usual) = (options("").unwrap(), Options::default());
        assert_eq!((found.nodes, found.cores, found.memory_bytes), (usual.nodes, usual.cores, usual.memory_bytes));
        assert_eq!((found.descheduling, found.soft_tainter), (usual.descheduling, true));
        assert_eq!(found.descheduler_release, Release::NEWEST);
        assert_eq!((found.ports, found.time_scale, found.advisor), (Ports::USUAL, 1.0, false));
    }

    #[test]
    fn options_become_the_labs() {
        let found = options("--nodes 3 --cores 8 --memory 16Gi --algorithm k5 --thresholds asym-low --time-scale 20 --no-soft-tainter --free-ports").unwrap();
        assert_eq!((found.nodes, found.cores, found.memory_bytes, found.time_scale), (3, 8, 16 << 30, 20.0));
        let by = Descheduling::By { algorithm: Algorithm::amplified(5.0), mode: Mode::AsymmetricLow };
        assert_eq!((found.descheduling, found.soft_tainter, found.ports), (by, false, Ports::default()));
        assert_eq!(options("--signals openshift").unwrap().signals, Source::OpenShift);
        for release in Release::ALL {
            assert_eq!(options(&format!("--descheduler-release {release}")).unwrap().descheduler_release, release);
        }
        assert_eq!(options("--with-advisor").unwrap().descheduling, Descheduling::Awaited);
        for algorithm in Algorithm::all() {
            assert!(options(&format!("--algorithm {}", algorithm.slug())).is_ok(), "{algorithm}");
        }
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        for line in [
            "--nodes 0",
            "--algorithm nonsense",
            "--algorithm k2",
            "--thresholds some",
            "--signals smoke",
            "--empty --vms 3",
            "--with-advisor --policy p",
            "--policy /nowhere",
            "--time-scale 0",
            "--name ../x",
            "--descheduler-release 4.16",
        ] {
            assert!(options(line).is_err(), "{line}");
        }
        let told = options("--descheduler-release 4.16").unwrap_err().to_string();
        assert!(told.contains("the stand-in plays 4.17, 4.18, 4.19, 4.20, 4.21, 5.1"), "{told}");
    }

    #[test]
    fn the_guide_names_what_is_there() {
        let places = Places {
            name: "second",
            kubeconfig: "/k",
            prometheus: "http://127.0.0.1:9090",
            exporter: "http://127.0.0.1:8000",
            descheduler: "http://127.0.0.1:8443",
            score: "descheduler:node:x:avg1m",
            advisor: false,
        };
        let text = guide(&places);
        for line in [
            "export KUBECONFIG=/k",
            "http://127.0.0.1:8443/metrics",
            "rebalance-lab logs --name second descheduler -f",
            "rebalance-lab down --name second",
            "curl 'http://127.0.0.1:9090/api/v1/query?query=descheduler:node:x:avg1m'",
            "-o jsonpath='{.metadata.annotations}'",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("virt-advisor operator"));
        assert!(guide(&Places { advisor: true, ..places }).contains(r#"-p '{"spec": {"action": "DryRun"}}'"#));
    }
}
