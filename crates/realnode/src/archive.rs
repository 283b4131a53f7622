//! Images of other people's programs, which are built from their sources here and not pulled: one layer with a few files.

use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};
use data_encoding::HEXLOWER;
use devcluster::tools::{self, Program};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

/// The image of the container that holds the namespaces of a pod.
pub(crate) const PAUSE: &str = "localhost/pause:1";
/// It waits until it is killed, as containerd does it in the end.
const PAUSE_PROGRAM: &str = "fn main() { loop { std::thread::park() } }";

/// What is in an image, and how it is run unless a pod says otherwise.
#[derive(Debug)]
pub struct Archive<'a> {
    /// The name with its tag, as pods have it.
    pub name: &'a str,
    pub entrypoint: &'a [&'a str],
    /// Where each file is in the image, and what it is.
    pub files: Vec<(String, Content)>,
}

#[derive(Debug)]
pub enum Content {
    /// That of a file on this machine.
    File(PathBuf),
    /// A link to another place in the container.
    Link(&'static str),
}

impl Archive<'_> {
    /// An image with one program in its root directory.
    pub fn of<'a>(program: Program, name: &'a str, entrypoint: &'a [&'a str]) -> anyhow::Result<Archive<'a>> {
        Archive::of_at(program, name, entrypoint, &format!("/{}", program.name()))
    }

    /// An image with one program at a place that pods name.
    pub fn of_at<'a>(
        program: Program,
        name: &'a str,
        entrypoint: &'a [&'a str],
        path: &str,
    ) -> anyhow::Result<Archive<'a>> {
        let file = Content::File(tools::ensure(program)?);
        Ok(Archive { name, entrypoint, files: vec![(path.to_owned(), file)] })
    }

    /// An image whose one program does nothing, for a container whose image is not built here.
    pub fn idle<'a>(name: &'a str, path: &'a str) -> anyhow::Result<Archive<'a>> {
        Ok(Archive { name, entrypoint: &[], files: vec![(path.to_owned(), Content::File(pause()?))] })
    }

    /// Writes the archive, in the form of `docker save`, into a folder.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let layer = self.layer()?;
        let digest = hex(&layer);
        let config = json!({
            "architecture": architecture(), "os": "linux",
            "config": {"User": "65532:65532", "Entrypoint": self.entrypoint, "WorkingDir": "/"},
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{digest}")]},
        });
        let config = config.to_string();
        let (config_name, layer_name) = (format!("{}.json", hex(config.as_bytes())), format!("{digest}.tar"));
        let manifest = json!([{"Config": config_name, "RepoTags": [self.name], "Layers": [layer_name]}]);
        let path = folder.join(format!("{}.tar", self.name.replace(['/', ':'], "-")));
        let write = || -> anyhow::Result<()> {
            let mut builder = Builder::new(fs::File::create(&path)?);
            append(&mut builder, &config_name, 0o644, config.as_bytes())?;
            append(&mut builder, &layer_name, 0o644, &layer)?;
            append(&mut builder, "manifest.json", 0o644, manifest.to_string().as_bytes())?;
            builder.into_inner()?.flush()?;
            Ok(())
        };
        write().with_context(|| format!("writing {}", path.display()))
    }

    fn layer(&self) -> anyhow::Result<Vec<u8>> {
        let mut builder = Builder::new(Vec::new());
        for (inside, content) in &self.files {
            let inside = inside.trim_start_matches('/');
            match content {
                Content::File(source) => {
                    let bytes = fs::read(source).with_context(|| format!("reading {}", source.display()))?;
                    append(&mut builder, inside, 0o755, &bytes)?;
                }
                Content::Link(target) => {
                    let mut header = Header::new_ustar();
                    header.set_entry_type(EntryType::Symlink);
                    header.set_size(0);
                    builder.append_link(&mut header, inside, target)?;
                }
            }
        }
        Ok(builder.into_inner()?)
    }
}

/// What every node needs.
pub(crate) fn write_basics(folder: &Path) -> anyhow::Result<()> {
    let files = vec![("/pause".to_owned(), Content::File(pause()?))];
    Archive { name: PAUSE, entrypoint: &["/pause"], files }.write(folder)?;
    Archive::of(Program::Coredns, crate::dns::IMAGE, &["/coredns"])?.write(folder)
}

/// The program that waits, built if it has to be.
fn pause() -> anyhow::Result<PathBuf> {
    let (source, program) = (tools::cache().join("pause.rs"), tools::cache().join("pause"));
    if !program.is_file() {
        fs::write(&source, PAUSE_PROGRAM)?;
        let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let mut command = Command::new(rustc);
        command.args(["-Ctarget-feature=+crt-static", "-Cstrip=symbols", "-o"]).arg(&program).arg(&source);
        let output = command.output().context("starting rustc")?;
        ensure!(output.status.success(), "pause does not build: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(program)
}

fn append(builder: &mut Builder<impl Write>, name: &str, mode: u32, bytes: &[u8]) -> anyhow::Result<()> {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(mode);
    header.set_size(bytes.len() as u64);
    Ok(builder.append_data(&mut header, name, bytes)?)
}

fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

fn architecture() -> Value {
    match env::consts::ARCH {
        "x86_64" => "amd64".into(),
        "aarch64" => "arm64".into(),
        other => other.into(),
    }
}
