//! `rebalance-lab machine-config-operator`: the stand-in for the machine config operator as a process.

use std::{io, time::Duration};

use process::Shutdown;
use sim::units::Span;
use standins::machine_config::{COMPONENT, MachineConfigSettings, StandIn, keep_alive};

use crate::part::Common;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How long a node reboots
    #[arg(long, value_name = "DURATION", default_value = "3s")]
    reboot: Span,
    #[command(flatten)]
    common: Common,
}

impl Args {
    fn settings(&self) -> MachineConfigSettings {
        MachineConfigSettings { reboot: Duration::from_secs(self.reboot.0), ..MachineConfigSettings::default() }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.common.run("machine config operator", COMPONENT, async |client, shutdown: Shutdown| {
        let stand_in = StandIn::start(client.clone(), args.settings());
        tokio::select! {
            () = keep_alive(client) => {}
            () = shutdown.requested() => {}
        }
        stand_in.shutdown().await.map_err(io::Error::other)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::parse;

    #[test]
    fn without_options_the_settings_are_the_librarys() {
        let settings = |line: &str| parse::<Args>(line).unwrap_or_else(|error| panic!("{error}")).settings();
        assert_eq!(settings(""), MachineConfigSettings::default());
        assert_eq!(settings("--reboot 1m").reboot, Duration::from_secs(60));
    }
}
