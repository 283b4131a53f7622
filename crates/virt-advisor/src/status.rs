//! `virt-advisor status`: one screen for the night shift, with the rights of whoever asks.

mod details;
mod drawing;
mod live;
mod read;
mod screen;
mod watch;

use std::process::ExitCode;

use advisor::{blast_radius::Unread, rollout_view::ConfigStatus};
use jiff::{Timestamp, tz::TimeZone};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    configs::{self, Listed},
    connection::Connection,
    output::{Document, Format, OutputArgs},
};
use screen::Look;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  virt-advisor status                              what needs somebody, and what is in progress
  virt-advisor status load-aware-rebalancing -w    go on until it is completed (0) or has failed (7)

Everything is read with your own rights. What you may not read is said, and the rest is shown.
With --watch the screen is redrawn in place; where standard output is not a terminal, every change is a line.
Ctrl-C ends the display and not the rollout.")]
pub(crate) struct Args {
    /// The profile to look at [default: all]
    profile: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    /// Go on and show every change, until the plan of PROFILE is completed or has failed
    #[arg(short, long)]
    watch: bool,
    /// List every node and every virtual machine
    #[arg(long)]
    all: bool,
}

/// Where configurations and their rollouts stand.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusReport {
    /// Those that need somebody first.
    configurations: Vec<ConfigStatus>,
    unread: Vec<Unread>,
    /// The configuration that was asked for. It is shown with everything, whatever its phase.
    #[serde(skip)]
    profile: Option<String>,
}

impl StatusReport {
    fn new(mut configurations: Vec<ConfigStatus>, unread: Vec<Unread>, profile: Option<&str>) -> Self {
        configurations.sort_by(|one, other| (one.urgency(), &one.profile).cmp(&(other.urgency(), &other.profile)));
        StatusReport { configurations, unread, profile: profile.map(str::to_owned) }
    }
}

pub(crate) async fn run(args: &Args, connection: &Connection) -> anyhow::Result<ExitCode> {
    let profile = args.profile.as_deref();
    if args.watch {
        anyhow::ensure!(
            args.output.output == Format::Text,
            "--watch prints text; without it there is -o json and yaml"
        );
        return watch::run(connection, profile, args.all).await;
    }
    let reader = connection.reader("status").await?;
    let Listed { configs, unreadable } = configs::chosen(&reader, profile).await?;
    let now = Timestamp::now();
    let cluster = read::cluster(&reader, &configs).await;
    let mut statuses: Vec<_> = configs.iter().map(|config| ConfigStatus::of(config, &cluster, now)).collect();
    let details = details::Details::read(&reader, &statuses).await;
    details.add_to(&mut statuses);
    let mut unread = read::unread(&cluster, &details);
    unread.extend(unreadable.iter().map(read::unreadable));
    let report = StatusReport::new(statuses, unread, profile);
    let look =
        Look { width: terminal::width(), signs: terminal::signs(), all: args.all, now, zone: TimeZone::system() };
    args.output.print(&Document::new("StatusReport", &report), || screen::render(&report, &look))?;
    Ok(ExitCode::SUCCESS)
}
