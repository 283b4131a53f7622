//! Builds third-party programs on request.

use anyhow::bail;
use devcluster::tools::{Program, ensure_all};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Programs to build; when none is named, those of `make test`
    programs: Vec<String>,
    /// Print where each program is
    #[arg(long)]
    paths: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut programs = Vec::new();
    for name in &args.programs {
        match Program::named(name) {
            Some(program) => programs.push(program),
            None => bail!("there is no program {name}; there are {}", Program::ALL.map(Program::name).join(", ")),
        }
    }
    if programs.is_empty() {
        programs = Program::ALL.into_iter().filter(|program| !program.is_special()).collect();
    }
    let paths = ensure_all(&programs)?;
    if args.paths {
        for (program, path) in programs.iter().zip(paths) {
            println!("{:<24} {:<10} {}", program.name(), program.version(), path.display());
        }
    }
    Ok(())
}
