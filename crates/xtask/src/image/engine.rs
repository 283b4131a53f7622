//! Builds and pushes images with podman, buildah or docker, from programs that were built before.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use anyhow::{Context, bail, ensure};

use super::{
    ProgramSource, Which,
    arch::Arch,
    commit::Commit,
    contents::{File, Image},
    megabytes,
    reference::ImageReference,
    static_build,
};
use crate::{packages::Project, root};

/// In the order in which they are looked for.
const TOOLS: [&str; 3] = ["podman", "docker", "buildah"];

const MUST_GATHER: &str = "Dockerfile.must-gather";

#[derive(clap::Args)]
pub(crate) struct BuildArgs {
    #[command(flatten)]
    push: PushArgs,
    #[command(flatten)]
    source: ProgramSource,
    /// Instead of the architecture of this machine
    #[arg(long)]
    arch: Option<Arch>,
}

#[derive(clap::Args)]
pub(crate) struct PushArgs {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    tool: Tool,
}

#[derive(clap::Args)]
struct Tool {
    /// The program that builds images, instead of the first one that is there: podman, docker, buildah
    #[arg(long = "tool", value_name = "PROGRAM")]
    name: Option<String>,
}

#[derive(clap::Args)]
pub(crate) struct MustGatherArgs {
    /// The name of the image, instead of the one in config/project.yaml
    #[arg(long, value_name = "IMAGE")]
    image: Option<ImageReference>,
    /// The image of the operator, from which it takes the program, instead of the one in config/project.yaml
    #[arg(long, value_name = "IMAGE")]
    operator_image: Option<ImageReference>,
    /// An image with a shell and tar, instead of the one in Dockerfile.must-gather
    #[arg(long, value_name = "IMAGE")]
    base_image: Option<ImageReference>,
    #[command(flatten)]
    tool: Tool,
}

pub(crate) fn build(args: &BuildArgs) -> anyhow::Result<()> {
    let tool = args.push.tool.find()?;
    let (image, reference) = (args.push.which.image(), args.push.which.reference()?.to_string());
    let arch = args.arch.map_or_else(Arch::host, Ok)?;
    let commit = Commit::current()?;
    let files = image.files(&args.source.path(image, arch)?, arch)?;
    let context = context(image, arch, &files, &commit)?;
    let (words, epoch) = (arguments(&tool, image, &reference, arch, &commit), commit.seconds().to_string());
    let mut command = Command::new(&tool);
    command.args(&words).arg(&context);
    if !takes_timestamp(&tool) {
        // Docker's builder takes the time of the image from there. Files have theirs.
        command.env("SOURCE_DATE_EPOCH", epoch);
    }
    run(&tool, &mut command)?;
    let size = files.iter().map(|file| file.bytes.len() as u64).sum();
    println!("{reference} built for linux/{}: {} on a node", arch.name(), megabytes(size));
    Ok(())
}

pub(crate) fn push(args: &PushArgs) -> anyhow::Result<()> {
    let tool = args.tool.find()?;
    run(&tool, Command::new(&tool).args(["push", &args.which.reference()?.to_string()]))
}

/// Builds the image for must-gather, from that of the operator and from a base with a shell, which the engine pulls if it has to.
pub(crate) fn build_must_gather(args: &MustGatherArgs) -> anyhow::Result<()> {
    let (tool, project) = (args.tool.find()?, Project::read()?);
    let image = args.image.clone().map_or_else(|| project.must_gather_image(), Ok)?;
    let operator = args.operator_image.clone().map_or_else(|| project.operator_image(), Ok)?;
    let mut command = Command::new(&tool);
    command.args(["build", "--file", MUST_GATHER, "--tag", &image.to_string()]);
    command.arg(format!("--build-arg=OPERATOR_IMAGE={operator}"));
    command.args(args.base_image.iter().map(|base| format!("--build-arg=BASE_IMAGE={base}")));
    // Nothing is copied from the folder that it is built from.
    let context = tempfile::tempdir().context("creating a temporary folder")?;
    run(&tool, command.arg(context.path()))
}

impl Tool {
    fn find(&self) -> anyhow::Result<String> {
        let is_there = |tool: &&str| {
            let mut asked = Command::new(tool);
            asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|it| it.success())
        };
        if let Some(tool) = &self.name {
            ensure!(is_there(&tool.as_str()), "{tool} is not installed: install it, or leave CONTAINER_TOOL out");
            return Ok(tool.clone());
        }
        match TOOLS.iter().find(|tool| is_there(tool)) {
            Some(tool) => Ok((*tool).to_owned()),
            None => bail!(
                "none of {} is installed: install one, name another with CONTAINER_TOOL, or write the image as a file, \
                 which needs none: make image-archive",
                TOOLS.join(", ")
            ),
        }
    }
}

/// The folder that an engine builds from: the Dockerfile, and the files of the image with the mode and time that they have in it.
fn context(image: Image, arch: Arch, files: &[File], commit: &Commit) -> anyhow::Result<PathBuf> {
    let name = format!("{}-{}", image.title(), arch.name());
    let folder = static_build::target_folder()?.join("images/context").join(name);
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(commit.seconds());
    let prepare = || {
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        fs::copy(root().join(image.dockerfile()), folder.join("Dockerfile"))?;
        for file in files {
            let path = folder.join(file.name);
            fs::write(&path, &file.bytes)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
            fs::File::open(&path)?.set_modified(time)?;
        }
        std::io::Result::Ok(())
    };
    prepare().with_context(|| format!("preparing {}", folder.display()))?;
    Ok(folder)
}

/// Whether a tool can set the time of everything in an image.
fn takes_timestamp(tool: &str) -> bool {
    let name = Path::new(tool).file_name().unwrap_or_default();
    name == "podman" || name == "buildah"
}

/// The arguments of an engine, without the folder that it builds from.
fn arguments(tool: &str, image: Image, reference: &str, arch: Arch, commit: &Commit) -> Vec<String> {
    let mut words = vec!["build".to_owned(), "--tag".to_owned(), reference.to_owned()];
    if takes_timestamp(tool) {
        words.push(format!("--timestamp={}", commit.seconds()));
    }
    if !arch.is_host() {
        words.push(format!("--platform=linux/{}", arch.name()));
    }
    words.extend(image.labels(commit).into_iter().map(|(name, value)| format!("--label={name}={value}")));
    words
}

fn run(tool: &str, command: &mut Command) -> anyhow::Result<()> {
    let words: Vec<String> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let status = command.current_dir(root()).status().with_context(|| tool.to_owned())?;
    ensure!(status.success(), "{tool} {} failed ({status}); does its engine run? `{tool} info` tells", words.join(" "));
    Ok(())
}
