//! `xtask check-profile NAME`: what a profile still lacks. The compiler and the tests find most of it one after the other; this
//! finds it at once, by reading the tree.

mod steps;
#[cfg(test)]
mod tests;
mod tree;

use anyhow::ensure;

use steps::missing;
use tree::Tree;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The name of the profile, as users write it
    name: String,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let missing = missing(&args.name, &Tree::read(&crate::root())?);
    let list: String = missing.iter().map(|what| format!("\n- {what}")).collect();
    ensure!(
        missing.is_empty(),
        "the profile {} lacks{list}\ndocs/profile-development-guide.md explains each",
        args.name
    );
    println!("The profile {} is complete. `make test` tells whether it is right.", args.name);
    Ok(())
}
