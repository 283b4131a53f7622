//! `virt-advisor operator`: the operator, in the foreground.

use std::{net::SocketAddr, time::Duration};

use advisor::{admission::PolicyMode, machine::Intervals, record::KEPT};
use anyhow::{Context, ensure};
use api::virt_platform_config::{ApprovalMode, WaitTimeout};
use clap::ValueEnum;
use operator::{LeaseSettings, OperatorSettings, election::LeaseTimes};
use process::{Shutdown, logging};

use crate::{connection::Connection, metrics::MetricsArgs, probes};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  virt-advisor operator
  virt-advisor operator --approval Reviewed --log-format text

It runs with the rights of the kubeconfig until it is told to end. In a cluster, config/default starts it as a Deployment with a leader.")]
pub(crate) struct Args {
    /// How long to wait, at most, before a plan in effect is compared with the cluster again
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    recheck_interval: Duration,
    /// How long to wait, at most, before missing prerequisites are looked for again
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    prerequisite_interval: Duration,
    /// How long no node of a MachineConfigPool may have been updated before that is reported as NoProgress; below the hour after
    /// which the machine config operator reports a node that it cannot drain
    #[arg(long, value_name = "DURATION", default_value = "45m", value_parser = duration)]
    stuck_after: Duration,
    /// What approves a plan where spec.approval.mode does not say it: `action: Apply`, or only the digest of the plan
    #[arg(long, value_enum, value_name = "MODE", default_value_t = Approval::Immediate)]
    approval: Approval,
    /// Keep the policy in the cluster by which the API server refuses unread plans, or remove it with Off; needs
    /// config/approval-policy [default: leave the policy to others]
    #[arg(long, value_enum, value_name = "MODE")]
    approval_policy: Option<ApprovalPolicy>,
    /// How many records of applied plans are kept for each profile. Those that tell what was there originally, and the last one
    /// that was applied, are kept in any case
    #[arg(long, value_name = "NUMBER", default_value_t = KEPT)]
    keep_records: usize,
    /// Elect a leader among several operators; only the leader does anything
    #[arg(long)]
    leader_elect: bool,
    /// The namespace of the lease [default: the operator's own]
    #[arg(long, value_name = "NAMESPACE", requires = "leader_elect")]
    leader_election_namespace: Option<String>,
    /// How long a leader that does not renew is waited for
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    leader_elect_lease_duration: Duration,
    /// How long a leader goes on trying to renew before it stops; less than the lease duration
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    leader_elect_renew_deadline: Duration,
    /// How often the lease is tried for or renewed
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    leader_elect_retry_period: Duration,
    /// Where to answer /healthz and /readyz, as :8081 or 127.0.0.1:8081 [default: nowhere]
    #[arg(long, value_name = "ADDRESS", value_parser = probes::address)]
    health_probe_bind_address: Option<SocketAddr>,
    #[command(flatten)]
    metrics: MetricsArgs,
    /// How to write the log, which goes to standard error [default: text on a terminal, else json]
    #[arg(long, value_enum)]
    log_format: Option<LogFormat>,
    /// What to log: error, warn, info, debug or trace, or a filter such as `info,operator=debug`
    #[arg(long, value_name = "FILTER", env = "LOG_LEVEL", default_value = "info")]
    log_level: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum Approval {
    Immediate,
    Reviewed,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum ApprovalPolicy {
    Off,
    Audit,
    Enforce,
}

impl From<ApprovalPolicy> for PolicyMode {
    fn from(policy: ApprovalPolicy) -> Self {
        match policy {
            ApprovalPolicy::Off => PolicyMode::Off,
            ApprovalPolicy::Audit => PolicyMode::Audit,
            ApprovalPolicy::Enforce => PolicyMode::Enforce,
        }
    }
}

impl From<Approval> for ApprovalMode {
    fn from(approval: Approval) -> Self {
        match approval {
            Approval::Immediate => ApprovalMode::Immediate,
            Approval::Reviewed => ApprovalMode::Reviewed,
        }
    }
}

impl From<LogFormat> for logging::Format {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Text => logging::Format::Text,
            LogFormat::Json => logging::Format::Json,
        }
    }
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    WaitTimeout::from(text).duration().map_err(|error| error.to_string())
}

pub(crate) async fn run(args: &Args, connection: &Connection) -> anyhow::Result<()> {
    ensure!(connection.namespace.is_none(), "the operator takes --leader-election-namespace instead of --namespace");
    args.metrics.check()?;
    let format = args.log_format.map_or_else(logging::Format::of_stderr, Into::into);
    let log_level = logging::to_stderr(&args.log_level, format)?;
    let config = connection.selection().config().await?;
    let intervals = Intervals {
        recheck: args.recheck_interval,
        prerequisites: args.prerequisite_interval,
        stuck_after: args.stuck_after,
        ..Intervals::default()
    };
    let shutdown = Shutdown::new().context("listening for signals")?;
    let namespace = args.leader_election_namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let times = LeaseTimes {
        lease_duration: args.leader_elect_lease_duration,
        renew_deadline: args.leader_elect_renew_deadline,
        retry_period: args.leader_elect_retry_period,
    };
    ensure!(
        times.retry_period < times.renew_deadline && times.renew_deadline < times.lease_duration,
        "--leader-elect-retry-period must be less than --leader-elect-renew-deadline, and that less than \
         --leader-elect-lease-duration"
    );
    let lease = args.leader_elect.then(|| LeaseSettings { times, ..LeaseSettings::new(namespace) });
    let approval_mode = args.approval.into();
    let approval_policy = args.approval_policy.map(PolicyMode::from);
    let records_kept = args.keep_records;
    let settings = OperatorSettings {
        intervals,
        approval_mode,
        records_kept,
        approval_policy,
        lease,
        ..OperatorSettings::default()
    };
    let probes = probes::serve(args.health_probe_bind_address, settings.readiness.clone()).await?;
    let own_namespace = config.default_namespace.clone();
    let api_server = operator::connect(config, &settings.metrics)?;
    let metrics = args.metrics.serve(&settings.metrics, log_level, &api_server, &own_namespace).await?;
    tokio::select! {
        ended = operator::run_on(api_server, settings, shutdown.requested()) => Ok(ended?),
        error = probes => Err(error),
        never = metrics => match never {},
    }
}
