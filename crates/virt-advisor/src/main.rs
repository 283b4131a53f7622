//! `virt-advisor`: what the advisor can do from the command line.

mod doctor;
mod gather;
mod impact;
mod metrics;
mod operator;
mod options;
mod preview;
mod probes;
mod reader;
mod report;
mod rights;
mod table;
mod tail;
mod terminal;
mod text;

use std::{ffi::OsString, path::Path, process::ExitCode};

use clap::Parser;

/// The version of this program, as the operator writes its own into statuses.
pub(crate) const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// Plans configuration for virtualization platforms and shows what it would change.
#[derive(Parser)]
#[command(name = "virt-advisor", version)]
enum Command {
    /// Show what a profile would change in the current cluster; writes nothing
    Preview(preview::Args),
    /// Show what a plan does to nodes and virtual machines, for how long, and what may go wrong
    Impact(impact::Args),
    /// Run the operator against the current cluster
    Operator(operator::Args),
    /// Collect what support asks for: configurations, plans, managed objects, events, logs
    Gather(gather::Args),
    /// Check the installation from here, and say what to do about what is wrong
    Doctor(doctor::Args),
}

/// One thread is enough for what mostly waits for an API server, and costs the same memory on a node of any size.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let done = |()| ExitCode::SUCCESS;
    let result = match Command::parse_from(arguments(std::env::args_os().collect())) {
        Command::Preview(args) => preview::run(&args).await.map(done),
        Command::Impact(args) => impact::run(&args).await.map(done),
        Command::Operator(args) => operator::run(&args).await.map(done),
        Command::Gather(args) => gather::run(&args).await.map(done),
        Command::Doctor(args) => doctor::run(&args).await,
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            anstream::eprintln!("{}error:{} {error:#}", text::ERROR, text::ERROR.render_reset());
            ExitCode::FAILURE
        }
    }
}

/// The command line. `oc adm must-gather` starts `/usr/bin/gather` without arguments, so under that name this is `gather`.
fn arguments(mut given: Vec<OsString>) -> Vec<OsString> {
    let name = given.first().and_then(|program| Path::new(program).file_name());
    if name.is_some_and(|name| name == "gather") {
        given.splice(1..1, ["gather".into(), "--must-gather".into()]);
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_program_chooses_the_command() {
        let arguments = |given: &[&str]| arguments(given.iter().map(OsString::from).collect());
        assert_eq!(arguments(&["/usr/bin/gather"]), ["/usr/bin/gather", "gather", "--must-gather"]);
        assert_eq!(arguments(&["gather", "-o", "x"]), ["gather", "gather", "--must-gather", "-o", "x"]);
        assert_eq!(arguments(&["/virt-advisor", "gather"]), ["/virt-advisor", "gather"]);
        assert_eq!(arguments(&[]), [] as [&str; 0]);
    }
}
