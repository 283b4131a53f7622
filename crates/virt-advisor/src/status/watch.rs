//! `virt-advisor status --watch`: draws again whenever something has changed. It survives whatever happens to the API server.
//! Configurations, nodes and pools are watched. Virtual machines are not: there may be thousands, and only those on nodes that are
//! being drained are shown. These are read again with a change, and every few seconds while there are any.

use std::{
    io::{self, ErrorKind, Write},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use advisor::{
    blast_radius::Reading,
    goal::{Goal, GoalState, goal_state},
    rollout_view::ConfigStatus,
};
use anyhow::Context;
use api::virt_platform_config::Phase;
use jiff::Timestamp;
use process::Shutdown;
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior, interval, sleep},
};

use super::{StatusReport, details::Details, drawing::Drawing, live, live::Live, read};
use crate::{
    configs,
    connection::Connection,
    failure::{Failure, failed},
    link::Link,
    program,
    reader::{Reader, why},
};

/// The time between two drawings is at least this.
const PACE: Duration = Duration::from_millis(300);
/// What is read beyond the watches is not read more often.
const DETAILS: Duration = Duration::from_secs(2);
/// Ages grow, and virtual machines move, although no watch tells.
const TICK: Duration = Duration::from_secs(5);
/// After this time what is known is shown, also if a list is still missing.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) async fn run(connection: &Connection, profile: Option<&str>, all: bool) -> anyhow::Result<ExitCode> {
    let link = Arc::new(Link::default());
    let mut away = link.subscribe();
    let reader = connection.observed_reader("status", link).await?;
    // Errors that waiting does not solve are told at once.
    configs::chosen(&reader, profile).await?;
    // Before the cursor is hidden: whoever ends the program gets it back.
    let shutdown = Shutdown::or_hangup().context("listening for signals")?;
    let mut view = View { profile, details: None, drawing: Drawing::new(all) };
    let ended = tokio::select! {
        ended = show(&mut view, &reader, &mut away) => Some(ended),
        () = shutdown.requested() => None,
    };
    drop(view);
    ended.unwrap_or_else(|| {
        // The terminal may be closed.
        let _ = writeln!(
            io::stderr(),
            "The display has ended. The rollout goes on; `{} status` shows it again.",
            program::name()
        );
        Ok(ExitCode::from(Failure::Interrupted as u8))
    })
}

/// Draws until there is nothing more to show.
async fn show(
    view: &mut View<'_>,
    reader: &Reader,
    away: &mut watch::Receiver<Option<Timestamp>>,
) -> anyhow::Result<ExitCode> {
    let profile = view.profile;
    let (_watches, mut observations) = live::start(reader, profile);
    let (mut live, start) = (Live::default(), Instant::now());
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            Some(observation) = observations.recv() => live.apply(observation),
            _ = away.changed() => {}
            _ = ticks.tick() => {}
        }
        while let Ok(observation) = observations.try_recv() {
            live.apply(observation);
        }
        if !live.is_settled() && start.elapsed() < LIST_TIMEOUT {
            continue;
        }
        match view.draw(reader, &live, away).await {
            // Whoever reads has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
            drawn => drawn.context("showing the status")?,
        }
        if let Some(end) = ended(&live, profile) {
            return end;
        }
        sleep(PACE).await;
    }
}

struct View<'a> {
    profile: Option<&'a str>,
    /// When they were read.
    details: Option<(Instant, Details)>,
    drawing: Drawing,
}

impl View<'_> {
    async fn draw(
        &mut self,
        reader: &Reader,
        live: &Live,
        away: &mut watch::Receiver<Option<Timestamp>>,
    ) -> io::Result<()> {
        let (configs, cluster, now) = (live.configs(), live.cluster(), Timestamp::now());
        let of = |config| ConfigStatus::of(config, &cluster, now);
        let mut statuses: Vec<ConfigStatus> = configs.items().iter().map(of).collect();
        let is_old = self.details.as_ref().is_none_or(|(read, _)| read.elapsed() >= DETAILS);
        if is_old && away.borrow_and_update().is_none() {
            let read = Details::read(reader, &statuses).await;
            let known = self.details.take().map(|(_, known)| known);
            self.details = Some((Instant::now(), read.or_known(known)));
        }
        let away_since = *away.borrow_and_update();
        let Some((_, details)) = &self.details else { return Ok(()) };
        details.add_to(&mut statuses);
        let is_rolling = statuses.iter().any(ConfigStatus::is_in_progress);
        let mut unread = if is_rolling { read::unread(&cluster, details) } else { Vec::new() };
        unread.extend(live.unreadable().map(read::unreadable));
        self.drawing.draw(&StatusReport::new(statuses, unread, self.profile), away_since)
    }
}

/// The end, if one configuration is watched and it has come.
fn ended(live: &Live, profile: Option<&str>) -> Option<anyhow::Result<ExitCode>> {
    let profile = profile?;
    let configs = match live.configs() {
        Reading::Read(configs) => configs,
        Reading::NotServed => return Some(Err(failed(Failure::NotFound, "the operator is not installed any more"))),
        Reading::Unreadable(reason) if reason == why(&kube_io::Class::Forbidden) => {
            let message = format!("you may not watch VirtPlatformConfig {profile}");
            return Some(Err(failed(Failure::Forbidden, message)));
        }
        Reading::Unreadable(_) => return None,
    };
    if let Some(unreadable) = live.unreadable().next() {
        return Some(Err(unreadable.clone().into()));
    }
    let Some(config) = configs.first() else {
        return Some(Err(failed(Failure::NotFound, format!("VirtPlatformConfig {profile} was deleted"))));
    };
    let phase = config.status.as_ref().and_then(|status| status.phase);
    match goal_state(Goal::Completed, config) {
        GoalState::Reached => Some(Ok(ExitCode::SUCCESS)),
        GoalState::Unreachable(why) if matches!(phase, Some(Phase::Failed | Phase::CompletedWithErrors)) => {
            Some(Err(failed(Failure::NotReached, format!("{profile}: {why}"))))
        }
        GoalState::Unreachable(_) | GoalState::Open => None,
    }
}
