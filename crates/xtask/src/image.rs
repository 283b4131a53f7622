//! Builds and pushes the images of the operator and of the lab, with podman or docker.

use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

use crate::{image_reference::ImageReference, root};

const TOOLS: [&str; 2] = ["podman", "docker"];
/// The stage of the Dockerfile that is the lab's image.
const LAB: &str = "rebalance-lab";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The image, instead of the one in config/manager, or in config/lab for the lab
    #[arg(long, value_name = "IMAGE")]
    image: Option<ImageReference>,
    /// The image of the lab instead of that of the operator
    #[arg(long)]
    lab: bool,
    /// The program that builds images, instead of podman, or docker where there is no podman
    #[arg(long, value_name = "PROGRAM")]
    tool: Option<String>,
}

pub(crate) fn build(args: &Args) -> anyhow::Result<()> {
    let image = args.image()?;
    let target: &[&str] = if args.lab { &["--target", LAB] } else { &[] };
    run(&args.tool()?, &[&["build"], target, &["--tag", &image, "."]].concat())?;
    println!("{image} built");
    Ok(())
}

pub(crate) fn push(args: &Args) -> anyhow::Result<()> {
    run(&args.tool()?, &["push", &args.image()?])
}

impl Args {
    fn image(&self) -> anyhow::Result<String> {
        match &self.image {
            Some(image) => Ok(image.to_string()),
            None if self.lab => Ok(lab::manifests::IMAGE.to_owned()),
            None => Ok(crate::deploy::default_image()?.to_string()),
        }
    }

    fn tool(&self) -> anyhow::Result<String> {
        let is_there = |tool: &&str| {
            let mut asked = Command::new(tool);
            asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|it| it.success())
        };
        if let Some(tool) = &self.tool {
            ensure!(is_there(&tool.as_str()), "{tool} is not installed: install it, or leave CONTAINER_TOOL out");
            return Ok(tool.clone());
        }
        match TOOLS.iter().find(|tool| is_there(tool)) {
            Some(tool) => Ok((*tool).to_owned()),
            None => bail!("neither podman nor docker is installed: install one, or name another with CONTAINER_TOOL"),
        }
    }
}

fn run(tool: &str, args: &[&str]) -> anyhow::Result<()> {
    let status = Command::new(tool).args(args).current_dir(root()).status().with_context(|| tool.to_owned())?;
    ensure!(status.success(), "{tool} {} failed ({status}); does its engine run? `{tool} info` tells", args.join(" "));
    Ok(())
}
