//! `rebalance-lab down`: ends a lab and waits until it has ended.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::{lab_files::LabFiles, lab_name::LabName};

const LIMIT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    name: LabName,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let (files, name) = (LabFiles::of_this_user(), &args.name.name);
    files.remove_stale(name)?;
    let process = files.process(name)?;
    process.terminate().with_context(|| format!("asking process {} to end", process.pid()))?;
    let began = Instant::now();
    while process.is_alive() {
        ensure!(
            began.elapsed() < LIMIT,
            "lab {name} has not ended within {} s; its own output tells why, and asking once more ends it at once",
            LIMIT.as_secs()
        );
        std::thread::sleep(POLL_INTERVAL);
    }
    anstream::println!("Lab {name} is down.");
    Ok(())
}
