//! `virt-advisor man`: the manual pages, one per command.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Command, ValueHint};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  virt-advisor man ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// The folder to write the pages to
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
}

pub(crate) fn run(args: &Args, command: Command) -> anyhow::Result<()> {
    std::fs::create_dir_all(&args.folder).with_context(|| format!("creating {}", args.folder.display()))?;
    clap_mangen::generate_to(command, &args.folder)
        .with_context(|| format!("writing manual pages to {}", args.folder.display()))?;
    terminal::print(&format!("{}\n", args.folder.display()))
}
