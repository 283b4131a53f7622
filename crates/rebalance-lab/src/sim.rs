//! `rebalance-lab sim`: the simulator at a terminal. All that it does is in the crate `sim`.

use std::io::ErrorKind;

use sim::command::{self, CommandError, Sim, Terminal};

pub(crate) fn run(args: &Sim) -> anyhow::Result<()> {
    match command::run(args, Terminal::of_this_process(), &mut anstream::stdout()) {
        // Whoever was reading has seen enough.
        Err(CommandError::Print(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}
