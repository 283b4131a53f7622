//! `virt-advisor wait`: for scripts that go on when a plan is made, reviewed, completed or failed.

use std::{
    io::{self, IsTerminal, Write},
    pin::pin,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use advisor::goal::{Goal, GoalState, goal_state};
use anyhow::Context;
use api::VirtPlatformConfig;
use clap::ValueEnum;
use jiff::Timestamp;
use kube_io::{Change, WatchEvent};
use process::Shutdown;
use tokio::{sync::watch, time::sleep};

use crate::{
    configs,
    connection::Connection,
    failure::{Failure, failed},
    gather::collect::CONFIG,
    link::Link,
    prose::outdented,
    watching,
};

/// The phase before the operator has told one.
const UNSEEN: &str = "not looked at";
/// Longer than anybody waits.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  virt-advisor wait load-aware-rebalancing --for=completed --timeout 4h
  virt-advisor wait load-aware-rebalancing --for=reviewed && notify-send approved

What it waits for:
  planned    there is a plan to read. Not any more after: invalid options, action Ignore
  completed  the plan is in effect on all nodes. Not any more after: Failed, CompletedWithErrors, drift that a
             person has to look at, a plan that was rejected, invalid options, action Ignore
  reviewed   somebody has approved the plan, or it needs no approval. Not any more after: Failed, a plan that
             was rejected, invalid options, action Ignore
  failed     the plan has failed, or a part of it. Not any more after: Completed, a plan that was rejected,
             invalid options, action Ignore

A missing component, a paused pool and a degraded node may pass, and are waited for.

Exit codes: 0 it has happened; 7 it will not happen before somebody edits the configuration; 8 not within
--timeout, and the rollout goes on; 9 there is no such configuration; 5 you may not read it; 6 the API server
does not answer at the start. Later on it may be away, and the wait goes on when it is back.")]
pub(crate) struct Args {
    /// The profile whose plan is waited for
    profile: String,
    /// What to wait for
    #[arg(long = "for", value_enum, value_name = "WHAT", default_value_t = Awaited::Completed)]
    awaited: Awaited,
    /// How long to wait at most, for example 30m [default: as long as it takes]
    #[arg(long, value_name = "DURATION", value_parser = crate::operator::duration)]
    timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Awaited {
    Planned,
    Completed,
    Reviewed,
    Failed,
}

impl Awaited {
    fn goal(self) -> Goal {
        match self {
            Awaited::Planned => Goal::Planned,
            Awaited::Completed => Goal::Completed,
            Awaited::Reviewed => Goal::Reviewed,
            Awaited::Failed => Goal::Failed,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Awaited::Planned => "planned",
            Awaited::Completed => "completed",
            Awaited::Reviewed => "reviewed",
            Awaited::Failed => "failed",
        }
    }
}

pub(crate) async fn run(args: &Args, connection: &Connection) -> anyhow::Result<ExitCode> {
    let (profile, word) = (&args.profile, args.awaited.word());
    let link = Arc::new(Link::default());
    let mut away = link.subscribe();
    let reader = connection.observed_reader("wait", link).await?;
    let config = configs::get(&reader, profile).await?;
    let mut told = None;
    if let Some(end) = look(args, &config, &mut told) {
        return end;
    }
    let mut watch = watching::watch(&reader, &CONFIG, Some(profile));
    let mut existing = false;
    let mut timeout = pin!(sleep(args.timeout.unwrap_or(FOREVER)));
    let mut shutdown = Shutdown::or_hangup().context("listening for signals")?;
    loop {
        let event = tokio::select! {
            event = watch.next() => event,
            _ = away.changed() => {
                connection_changed(&mut away);
                continue;
            }
            () = &mut timeout => {
                let phase = told.as_deref().unwrap_or(UNSEEN);
                let message = format!("{profile} is not {word} in time: it is {phase}. What has begun goes on");
                return Err(failed(Failure::TimedOut, message));
            }
            () = shutdown.wait() => {
                // The terminal may be closed.
                let _ = writeln!(io::stderr(), "Nobody waits any more. What has begun goes on.");
                return Ok(ExitCode::from(Failure::Interrupted as u8));
            }
        };
        let deleted = || failed(Failure::NotFound, format!("VirtPlatformConfig {profile} was deleted"));
        match event {
            WatchEvent::Change(Change::Applied(object)) => {
                existing = true;
                if let Some(end) = look(args, &configs::parse(serde_json::to_value(*object)?)?, &mut told) {
                    return end;
                }
            }
            WatchEvent::Change(Change::Deleted(_)) => return Err(deleted()),
            WatchEvent::Change(Change::Synced) if !existing => return Err(deleted()),
            WatchEvent::Change(Change::Synced) => {}
            WatchEvent::NotServed => return Err(deleted()),
            WatchEvent::Forbidden(_) => {
                return Err(failed(Failure::Forbidden, format!("you may not watch VirtPlatformConfig {profile}")));
            }
        }
    }
}

/// The end, if it has come. Every change of the phase is told.
fn look(args: &Args, config: &VirtPlatformConfig, told: &mut Option<String>) -> Option<anyhow::Result<ExitCode>> {
    let (profile, word) = (&args.profile, args.awaited.word());
    let state = goal_state(args.awaited.goal(), config);
    if let Some(news) = news(args, config, &state, told) {
        say(&news);
    }
    match state {
        GoalState::Open => None,
        GoalState::Reached => Some(Ok(ExitCode::SUCCESS)),
        GoalState::Unreachable(why) => {
            let message = format!("{profile} will not be {word} before somebody edits it: {why}");
            Some(Err(failed(Failure::NotReached, message)))
        }
    }
}

/// What to tell about the phase. At the end there is nothing to wait for.
fn news(args: &Args, config: &VirtPlatformConfig, state: &GoalState, told: &mut Option<String>) -> Option<String> {
    let (profile, word) = (&args.profile, args.awaited.word());
    let phase = config.status.as_ref().and_then(|status| status.phase).map_or(UNSEEN, |phase| phase.as_str());
    match told.replace(phase.to_owned()) {
        None if *state == GoalState::Open => Some(format!("waiting until {profile} is {word}; it is {phase}")),
        Some(before) if before != phase => Some(format!("{profile} is {phase}")),
        _ => None,
    }
}

fn connection_changed(away: &mut watch::Receiver<Option<Timestamp>>) {
    say(connection(away.borrow_and_update().is_some()));
}

fn connection(is_lost: bool) -> &'static str {
    if is_lost { "no connection to the API server; trying again" } else { "connected to the API server again" }
}

/// A log has one line for each of these, however wide.
fn say(text: &str) {
    let width = if io::stderr().is_terminal() { terminal::width() } else { usize::MAX };
    anstream::eprint!("{}", line(Timestamp::now(), text, width));
}

fn line(at: Timestamp, text: &str, width: usize) -> String {
    outdented(&format!("{} {text}", at.strftime("%H:%M:%SZ")), width)
}

#[cfg(test)]
mod tests {
    use api::virt_platform_config::Profile;

    use super::*;
    use crate::golden;

    #[test]
    fn every_change_of_the_phase_is_a_line_and_so_is_a_lost_connection() {
        let args =
            Args { profile: "load-aware-rebalancing".into(), awaited: Awaited::Completed, timeout: Some(FOREVER) };
        let mut told = None;
        let mut lines = Vec::new();
        for phase in ["ReviewRequired", "ReviewRequired", "Scheduled", "InProgress", "Completed"] {
            let config = golden::config(Profile::LoadAwareRebalancing, phase, Some(&golden::plan()), |_| {});
            let news = news(&args, &config, &goal_state(Goal::Completed, &config), &mut told);
            lines.extend(news);
        }
        lines.extend([true, false].map(connection).map(str::to_owned));
        golden::assert("wait", |width| lines.iter().map(|text| line(golden::now(), text, width)).collect());
    }
}
