//! The arguments of `rebalance-lab up`, and the lab that they describe.

use std::path::PathBuf;

use advisor::kube_descheduler::Release;
use anyhow::Context;
use balance::{Algorithm, Mode, promql::Source};
use lab::up::{Descheduling, Options, PartLogs, Ports};
use lab_parts::webhook::Switch;
use sim::units::Bytes;

use crate::{
    lab_name::LabName,
    part::{release, time_scale},
};

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
    pub(super) vms: usize,
    /// Begin without VMs
    #[arg(long, conflicts_with = "vms")]
    pub(super) empty: bool,
    /// By which algorithm nodes are scored: a slug as `rebalance-lab sim algorithms` lists them, or k3
    #[arg(long, default_value = "k3", value_parser = algorithm)]
    pub(super) algorithm: Algorithm,
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
    pub(super) with_advisor: bool,
    /// Which OpenShift release's descheduler operator is played: 4.17, 4.18, 4.19, 4.20, 4.21 or 5.1
    #[arg(long, value_name = "RELEASE", default_value_t = Release::NEWEST, value_parser = release)]
    descheduler_release: Release,
    /// Whether VMs that migrate, or have migrated a short time ago, are not evicted, as by the descheduler's plugin
    /// KubevirtMigrationAware: on, off, or auto: where the release has it
    #[arg(long, value_name = "SWITCH", default_value = "auto", num_args = 0..=1, default_missing_value = "on")]
    migration_aware: Switch,
    /// Do not mark busy nodes for the scheduler
    #[arg(long)]
    no_soft_tainter: bool,
    /// How many times faster than the clock everything goes
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = time_scale)]
    pub(super) time_scale: f64,
    /// Listen on any free ports instead of 9090 (Prometheus), 8000 (exporter) and 8443 (descheduler)
    #[arg(long)]
    free_ports: bool,
    /// What our parts log: error, warn, info, debug or trace, or a filter such as `info,lab=debug`
    #[arg(long, value_name = "FILTER", env = "LOG_LEVEL", default_value = "info")]
    pub(super) log_level: String,
    #[command(flatten)]
    pub(super) name: LabName,
}

impl Args {
    pub(super) fn options(&self, logs: PartLogs) -> anyhow::Result<Options> {
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
            migration_aware: self.migration_aware,
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

/// An algorithm that Prometheus has rules for.
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
        assert_eq!((found.descheduler_release, found.migration_aware), (Release::NEWEST, Switch::Auto));
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
        for (line, switch) in [("", Switch::On), ("on", Switch::On), ("off", Switch::Off), ("auto", Switch::Auto)] {
            assert_eq!(options(&format!("--migration-aware {line}")).unwrap().migration_aware, switch);
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
            "--migration-aware maybe",
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
}
