//! `rebalance-lab watch`: a running lab, live: redrawn in place on a terminal, a text per change elsewhere.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use anstream::ColorChoice;
use anyhow::{Context, bail};
use jiff::Timestamp;
use lab::survey::{self, Survey};
use process::Shutdown;
use terminal_size::terminal_size_of;
use tokio::time::{MissedTickBehavior, interval};

use crate::{lab_file::RunningLab, lab_files::LabFiles, lab_name::LabName, status::runtime, terminal::print};

const INTERVAL: Duration = Duration::from_secs(1);
/// Switches to the alternate screen and hides the cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

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
    Terminal(AlternateScreen),
    /// With the survey that was printed last.
    Elsewhere(Option<Box<Survey>>),
}

impl Screen {
    fn new() -> Screen {
        if io::stdout().is_terminal() { Screen::Terminal(AlternateScreen::enter()) } else { Screen::Elsewhere(None) }
    }

    fn show(&mut self, survey: &Survey) -> anyhow::Result<()> {
        match self {
            Screen::Terminal(_) => {
                let size = terminal_size_of(io::stdout()).map(|(width, height)| (width.0.into(), height.0.into()));
                let text = survey::text(survey, size.map(|(width, _)| width));
                let frame = frame(&text, size.map(|(_, height)| height), colors());
                let mut out = io::stdout().lock();
                out.write_all(frame.as_bytes()).and_then(|()| out.flush()).context("drawing")
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

fn colors() -> bool {
    anstream::AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

/// The alternate screen of the terminal. Dropping it shows the normal one again.
struct AlternateScreen;

impl AlternateScreen {
    fn enter() -> AlternateScreen {
        let _ = io::stdout().write_all(ENTER.as_bytes());
        AlternateScreen
    }
}

impl Drop for AlternateScreen {
    fn drop(&mut self) {
        let mut out = io::stdout();
        let _ = out.write_all(LEAVE.as_bytes()).and_then(|()| out.flush());
    }
}

/// Draws a text over the last one: each line clears the rest of its line, and the last one the rest of the screen.
fn frame(text: &str, height: Option<usize>, colors: bool) -> String {
    let text = if colors { text.to_owned() } else { anstream::adapter::strip_str(text).to_string() };
    let shown = height.map_or(usize::MAX, |height| height.saturating_sub(1));
    let lines: String = text.lines().take(shown).map(|line| format!("{line}\x1b[K\r\n")).collect();
    format!("\x1b[H{lines}\x1b[J")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_begins_at_the_top_and_leaves_nothing_of_the_last() {
        assert_eq!(frame("a\nb\n", None, true), "\x1b[Ha\x1b[K\r\nb\x1b[K\r\n\x1b[J");
        assert_eq!(frame("a\nb\nc\n", Some(3), true), "\x1b[Ha\x1b[K\r\nb\x1b[K\r\n\x1b[J", "it does not scroll");
        assert_eq!(frame("\x1b[31ma\x1b[0m\n", None, false), "\x1b[Ha\x1b[K\r\n\x1b[J");
    }
}
