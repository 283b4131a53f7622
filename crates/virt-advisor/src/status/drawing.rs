//! Where `status -w` shows what it knows: a screen that is redrawn in place, or lines where there is no terminal.

use std::io::{self, IsTerminal, Write};

use advisor::rollout_view::{ConfigStatus, changes};
use jiff::{Timestamp, tz::TimeZone};
use terminal::{RedrawnScreen, table::visible};

use super::{
    StatusReport,
    screen::{self, Look},
};

/// The line with the time, the one before it, and the one in which the cursor stays.
const AROUND: usize = 3;

pub(super) enum Drawing {
    Screen(Screen),
    Lines(Lines),
}

impl Drawing {
    pub(super) fn new(all: bool) -> Self {
        let has_codes = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        match io::stdout().is_terminal() && has_codes {
            true => Drawing::Screen(Screen { screen: RedrawnScreen::in_place(), all, zone: TimeZone::system() }),
            false => Drawing::Lines(Lines::default()),
        }
    }

    pub(super) fn draw(&mut self, report: &StatusReport, away_since: Option<Timestamp>) -> io::Result<()> {
        let now = Timestamp::now();
        match self {
            Drawing::Screen(screen) => screen.draw(report, away_since, now),
            Drawing::Lines(lines) => {
                let told = lines.news(report, away_since);
                let told: String = told.iter().map(|line| format!("{} {line}\n", time(now))).collect();
                io::stdout().write_all(told.as_bytes())
            }
        }
    }
}

fn time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(super) struct Screen {
    screen: RedrawnScreen,
    all: bool,
    zone: TimeZone,
}

impl Screen {
    fn draw(&self, report: &StatusReport, away_since: Option<Timestamp>, now: Timestamp) -> io::Result<()> {
        let look =
            Look { width: terminal::width(), signs: terminal::signs(), all: self.all, now, zone: self.zone.clone() };
        let height = terminal::height().unwrap_or(usize::MAX);
        let mut text = screen::fitted(report, &look, height.saturating_sub(AROUND).max(1));
        text += &match away_since {
            Some(since) => format!("\nno connection to the API server since {}; trying again\n", look.clock(since)),
            None => format!("\nupdated {}\n", look.clock(now)),
        };
        self.screen.draw(&text)
    }
}

/// What was told so far.
#[derive(Debug, Default)]
pub(super) struct Lines {
    told: Vec<ConfigStatus>,
    was_away: bool,
}

impl Lines {
    fn news(&mut self, report: &StatusReport, away_since: Option<Timestamp>) -> Vec<String> {
        let mut lines = Vec::new();
        match (self.was_away, away_since) {
            (false, Some(since)) => {
                lines.push(format!("no connection to the API server since {}; trying again", time(since)));
            }
            (true, None) => lines.push("connected to the API server again".into()),
            _ => {}
        }
        for config in &report.configurations {
            let known = self.told.iter().find(|known| known.profile == config.profile);
            lines.extend(changes(known, config));
        }
        let is_gone =
            |known: &&ConfigStatus| !report.configurations.iter().any(|config| config.profile == known.profile);
        lines.extend(self.told.iter().filter(is_gone).map(|known| format!("{}: deleted", known.profile)));
        self.told.clone_from(&report.configurations);
        self.was_away = away_since.is_some();
        lines.iter().map(|line| one_line(line)).collect()
    }
}

/// What others have written stays in its line, and does nothing to a terminal.
fn one_line(text: &str) -> String {
    visible(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use advisor::rollout_view::Cluster;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_is_one_line_whatever_others_have_written() {
        let message = "failed to drain:\n  error: \u{1b}[2Jdisk full\r\n";
        let config = json!({
            "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
            "metadata": {"name": "example-profile"}, "spec": {"profile": "example-profile", "action": "Apply"},
            "status": {"phase": "Failed", "conditions": [{
                "type": "Stalled", "status": "True", "reason": "Failed", "message": message,
                "lastTransitionTime": "2026-01-01T10:00:00Z",
            }]},
        });
        let config = serde_json::from_value(config).unwrap();
        let status = ConfigStatus::of(&config, &Cluster::default(), Timestamp::UNIX_EPOCH);
        let told = Lines::default().news(&StatusReport::new(vec![status], Vec::new(), None), None);
        let expected =
            "example-profile: Failed, stalled (Failed): failed to drain: error: \\u{1b}[2Jdisk full".to_owned();
        assert_eq!(told, [expected]);
    }

    #[test]
    fn a_lost_connection_is_told_once_and_its_return_too() {
        let report = StatusReport::new(Vec::new(), Vec::new(), None);
        let mut lines = Lines::default();
        let since = Some("2026-01-01T10:00:00Z".parse().unwrap());
        assert_eq!(lines.news(&report, None), [""; 0]);
        let lost = ["no connection to the API server since 2026-01-01T10:00:00Z; trying again"];
        assert_eq!(lines.news(&report, since), lost);
        assert_eq!(lines.news(&report, since), [""; 0]);
        assert_eq!(lines.news(&report, None), ["connected to the API server again"]);
    }
}
