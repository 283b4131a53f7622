//! `rebalance-lab up`: the whole lab, until somebody ends it.

mod args;
mod guide;
mod part_logs;

use std::{
    io::Write,
    time::{Duration, Instant},
};

use anstyle::{AnsiColor, Style};
use anyhow::Context;
use balance::promql;
use lab::{
    play::Placement,
    up::{Descheduling, Lab, Options, PartLogs, Ready},
};
use process::{Shutdown, logging};
use terminal::{Align, pad};

pub(crate) use args::Args;
use guide::{Places, guide};
use part_logs::ByModule;

use crate::{
    lab_file::LabInfo,
    lab_files::{Claim, LabFiles},
};

const DONE: Style = AnsiColor::Green.on_default().bold();
/// How long tasks that still run may take to notice the shutdown, such as the build of a program.
const GRACE: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let logs = PartLogs::default();
    let options = args.options(logs.clone())?;
    let guests = if args.empty { Placement::default() } else { Placement::sample(args.vms, &options)? };
    logging::to_writer(&args.log_level, ByModule(logs))?;
    let claim = LabFiles::of_this_user().claim(&args.name.name)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting")?;
    let result = runtime.block_on(run_until_shutdown(args, options, &guests, &claim));
    runtime.shutdown_timeout(GRACE);
    result
}

/// Starts the lab, waits for a signal and ends the lab.
async fn run_until_shutdown(args: &Args, options: Options, guests: &Placement, claim: &Claim) -> anyhow::Result<()> {
    let mut shutdown = Shutdown::or_hangup().context("listening for signals")?;
    let lab = tokio::select! {
        lab = start(args, options, guests) => lab?,
        () = shutdown.wait() => {
            say("Ended before it was up.");
            return Ok(());
        }
    };
    let info = info(args, &lab).await?;
    let summary = summary(args, &lab, &info)?;
    claim.publish(info)?;
    say(&summary);
    shutdown.wait().await;
    say("Ending the lab ...");
    tokio::select! {
        () = lab.shutdown() => {}
        // A second signal: dropping the lab ends it at once.
        () = shutdown.wait() => {}
    }
    say("The lab is down.");
    Ok(())
}

async fn start(args: &Args, options: Options, guests: &Placement) -> anyhow::Result<Lab> {
    say("Starting the control plane; the first time, its programs are built, which takes minutes.");
    let began = Instant::now();
    let ready = |part: &str, place: &str| {
        let (part, place) = (pad(part, 24, Align::Left), pad(place, 40, Align::Left));
        let line = format!("{DONE}✔{DONE:#} {part}  {place}  {:5.1} s", began.elapsed().as_secs_f64());
        say(line.trim_end());
    };
    // The KubeDescheduler is created when the VMs run where they shall start.
    let orders = match options.descheduling {
        Descheduling::By { algorithm, mode } => Some((algorithm, mode)),
        Descheduling::Policy(_) | Descheduling::Awaited => None,
    };
    let descheduling = if orders.is_some() { Descheduling::Awaited } else { options.descheduling };
    let options = Options { descheduling, ..options };
    let lab = Lab::start(options, |Ready { part, place }| ready(part, &place)).await?;
    if !args.empty {
        guests.create(lab.client()).await?;
        ready("VMs", &format!("{} running, unevenly loaded", guests.0.len()));
    }
    if let Some((algorithm, mode)) = orders {
        lab.balance(&algorithm, mode).await?;
        ready("KubeDescheduler", &format!("{}, {}", algorithm.slug(), mode.slug()));
    }
    Ok(lab)
}

async fn info(args: &Args, lab: &Lab) -> anyhow::Result<LabInfo> {
    Ok(LabInfo {
        kubeconfig: lab.kubeconfig().await?,
        prometheus: lab.prometheus_url()?,
        time_scale: args.time_scale,
        parts: lab.parts()?,
        policy: lab.policy(),
        journal: lab.journal(),
    })
}

fn summary(args: &Args, lab: &Lab, info: &LabInfo) -> anyhow::Result<String> {
    let prometheus = lab.prometheus_url()?;
    let descheduler = lab.descheduler_url().unwrap_or_default();
    Ok(guide(&Places {
        name: &args.name.name,
        kubeconfig: &info.kubeconfig.display().to_string(),
        prometheus: &prometheus,
        exporter: &lab.exporter_url(),
        descheduler: &descheduler,
        score: &promql::node_series(&args.algorithm),
        advisor: args.with_advisor,
    }))
}

/// Prints a line. A closed pipe is ignored: the lab goes on without a reader.
fn say(text: &str) {
    let _ = writeln!(anstream::stdout(), "{text}");
}
