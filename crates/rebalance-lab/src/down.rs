//! `rebalance-lab down`: ends a lab and waits until it has ended.

use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::record::{Name, Records};

const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    name: Name,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let (records, name) = (Records::of_this_user(), &args.name.name);
    records.sweep(name)?;
    let being = records.being(name)?;
    being.end()?;
    let began = Instant::now();
    while being.is_alive() {
        ensure!(
            began.elapsed() < PATIENCE,
            "lab {name} has not ended within {} s; its own output tells why, and asking once more ends it at once",
            PATIENCE.as_secs()
        );
        std::thread::sleep(PAUSE);
    }
    anstream::println!("Lab {name} is down.");
    Ok(())
}
