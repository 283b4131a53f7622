//! `rebalance-lab descheduler-operator`: the stand-in for the descheduler operator as a process, with the real descheduler
//! as its child.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use advisor::kube_descheduler::Release;
use anyhow::Context;
use process::Shutdown;
use sim::units::Span;
use standins::descheduler::{self, DeschedulerSettings, Mode, Policy, PolicySource};

use crate::part::{Common, release, time_scale};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where Prometheus answers [default: none, and what needs it is refused]
    #[arg(long, value_name = "URL")]
    prometheus: Option<String>,
    /// The descheduler to run [default: the lab's own build]
    #[arg(long, value_name = "PROGRAM")]
    descheduler: Option<PathBuf>,
    /// The kubeconfig of the descheduler [default: its pod's own cluster]
    #[arg(long, value_name = "FILE", env = "KUBECONFIG", hide_env_values = true)]
    kubeconfig: Option<PathBuf>,
    /// Where the descheduler's files and its log are kept [default: a folder of its own among the temporary ones]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// How many times faster than the clock intervals go; none becomes shorter than a second
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = time_scale)]
    time_scale: f64,
    /// Act as if the nodes did not measure pressure
    #[arg(long)]
    without_psi: bool,
    /// Which OpenShift release's operator is played: 4.17, 4.18, 4.19, 4.20, 4.21 or 5.1
    #[arg(long, value_name = "RELEASE", default_value_t = Release::NEWEST, value_parser = release)]
    release: Release,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Where to answer /metrics of the descheduler, and /health
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0")]
    host: IpAddr,
    /// On which port to answer; 0 for any that is free
    #[arg(long, default_value_t = 8443)]
    port: u16,
    #[command(flatten)]
    common: Common,
}

/// Where the policy comes from.
#[derive(clap::Args)]
pub(crate) struct PolicyArgs {
    /// Run this DeschedulerPolicy as it is, whatever the KubeDescheduler says
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// The time between cycles of that policy
    #[arg(long, value_name = "DURATION", default_value = "60s", requires = "policy")]
    interval: Span,
    /// Have that policy evict nothing
    #[arg(long, requires = "policy")]
    dry_run: bool,
}

impl PolicyArgs {
    pub(crate) fn read(&self, time_scale: f64) -> anyhow::Result<PolicySource> {
        let Some(path) = &self.policy else { return Ok(PolicySource::KubeDescheduler) };
        let text = std::fs::read_to_string(path).with_context(|| format!("reading the policy {}", path.display()))?;
        let interval = Duration::from_secs(self.interval.0).div_f64(time_scale).max(Duration::from_secs(1));
        let mode = if self.dry_run { Mode::Predictive } else { Mode::Automatic };
        Ok(PolicySource::Fixed(Policy::from_text(text, interval, mode)))
    }
}

impl Args {
    fn settings(&self) -> anyhow::Result<DeschedulerSettings> {
        let program = self.descheduler.clone().map_or_else(descheduler::program, Ok)?;
        let temporary = || std::env::temp_dir().join(format!("rebalance-lab-descheduler-{}", std::process::id()));
        Ok(DeschedulerSettings {
            release: self.release,
            kubeconfig: self.kubeconfig.clone(),
            prometheus_url: self.prometheus.clone(),
            metrics: Some(SocketAddr::new(self.host, self.port)),
            time_scale: self.time_scale,
            has_psi: !self.without_psi,
            policy_source: self.policy.read(self.time_scale)?,
            ..DeschedulerSettings::new(program, self.folder.clone().unwrap_or_else(temporary))
        })
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let settings = args.settings()?;
    args.common.run("stand-in for the descheduler operator", descheduler::COMPONENT, |client, shutdown: Shutdown| {
        descheduler::run(client, settings, shutdown.requested())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::parse;

    fn settings(line: &[&str]) -> anyhow::Result<DeschedulerSettings> {
        parse::<Args>(&[&["--descheduler=d", "--folder=f", "--kubeconfig=k"], line].concat().join(" "))?.settings()
    }

    #[test]
    fn options_become_settings() {
        let settings =
            settings(&["--prometheus=http://p", "--time-scale=20", "--without-psi", "--port=0", "--release=4.20"])
                .unwrap();
        let expected = DeschedulerSettings {
            release: Release::V4_20,
            kubeconfig: Some("k".into()),
            prometheus_url: Some("http://p".into()),
            metrics: Some(([0, 0, 0, 0], 0).into()),
            time_scale: 20.0,
            has_psi: false,
            ..DeschedulerSettings::new("d", "f")
        };
        assert_eq!(settings, expected);
    }

    #[test]
    fn a_policy_is_read_and_its_interval_follows_the_time_scale() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.yaml");
        std::fs::write(&file, "kind: DeschedulerPolicy\n").unwrap();
        let policy = format!("--policy={}", file.display());
        let found = settings(&[&policy, "--interval=2m", "--dry-run", "--time-scale=20"]).unwrap().policy_source;
        let expected = Policy::from_text("kind: DeschedulerPolicy\n".into(), Duration::from_secs(6), Mode::Predictive);
        assert_eq!(found, PolicySource::Fixed(expected));
        assert!(settings(&["--dry-run"]).is_err(), "without a policy the KubeDescheduler says so");
        let problem = settings(&["--policy=/nowhere/policy"]).unwrap_err().to_string();
        assert_eq!(problem, "reading the policy /nowhere/policy");
    }
}
