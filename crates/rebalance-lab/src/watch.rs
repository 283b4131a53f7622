//! `rebalance-lab watch`: a running lab, live: redrawn in place on a terminal, a text per change elsewhere.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use anyhow::{Context, bail};
use jiff::Timestamp;
use lab::survey::{self, Survey};
use process::Shutdown;
use terminal::{RedrawnScreen, Terminal, print};
use tokio::time::{MissedTickBehavior, interval};

use crate::{lab_file::RunningLab, lab_files::LabFiles, lab_name::LabName, status::runtime};

const INTERVAL: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    name: LabName,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let lab = LabFiles::of_this_user().find(&args.name.name)?;
    runtime()?.block_on(watch(&lab))
}

async fn watch(lab: &RunningLab) -> anyhow::Result<()> {
    let sources = lab.sources().await?;
    let mut shutdown = Shutdown::new().context("listening for signals")?;
    let mut screen = Screen::new();
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.wait() => return Ok(()),
            _ = ticks.tick() => {}
        }
        let survey = tokio::select! {
            () = shutdown.wait() => return Ok(()),
            survey = survey::take(&sources) => survey,
        };
        if !lab.process.is_alive() {
            drop(screen);
            bail!("lab {} has ended", lab.name);
        }
        screen.show(&survey)?;
    }
}

enum Screen {
    Terminal(RedrawnScreen),
    /// With the survey that was printed last.
    Elsewhere(Option<Box<Survey>>),
}

impl Screen {
    fn new() -> Screen {
        if io::stdout().is_terminal() { Screen::Terminal(RedrawnScreen::alternate()) } else { Screen::Elsewhere(None) }
    }

    fn show(&mut self, survey: &Survey) -> anyhow::Result<()> {
        match self {
            Screen::Terminal(screen) => {
                screen.draw(&survey::text(survey, Terminal::of_this_process().width)).context("drawing")
            }
            Screen::Elsewhere(last) => {
                // Without the time it was taken: ages alone are no change.
                let timeless = Box::new(Survey { taken: Timestamp::UNIX_EPOCH, ..survey.clone() });
                if last.as_ref() == Some(&timeless) {
                    return Ok(());
                }
                *last = Some(timeless);
                print(&format!("{}\n{}\n", survey.taken, survey::text(survey, None)))
            }
        }
    }
}
