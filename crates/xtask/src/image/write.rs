//! Writes an image as a file, without a container engine, and beside it what is in it and where it comes from.

use std::{
    env, fs,
    io::BufWriter,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;
use devcluster::tools::Program;

use super::{
    ProgramSource, Which,
    arch::Arch,
    archive, cargo_packages,
    commit::Commit,
    contents::{File, Image},
    digest::sha256,
    go_build_info::GoBuildInfo,
    layer::Layer,
    megabytes,
    oci::Documents,
    provenance::{Digested, Facts, Request},
    reference::ImageReference,
    runtime::Runtime,
    sbom::{self, GoProgram, RustProgram, Subject},
    static_build,
};
use crate::{packages::VERSION, root};

const LOCK: &str = "Cargo.lock";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    source: ProgramSource,
    /// Instead of the architecture of this machine; may be repeated, each gets a file of its own
    #[arg(long)]
    arch: Vec<Arch>,
    /// The folder, instead of `images` where Cargo builds
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

impl Args {
    /// As part of a release.
    pub(crate) fn new(image: Option<ImageReference>, lab: bool, arch: &[Arch], profile: &str, folder: &Path) -> Args {
        Args {
            which: Which { image, lab },
            source: ProgramSource { profile: profile.to_owned(), program: None },
            arch: arch.to_vec(),
            output: Some(folder.to_owned()),
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let architectures = Arch::or_host(&args.arch)?;
    if args.source.program.is_none() {
        Arch::check_all(&architectures)?;
    }
    let commit = Commit::current()?;
    let folder = match &args.output {
        Some(folder) => folder.clone(),
        None => static_build::target_folder()?.join("images"),
    };
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    for arch in architectures {
        let image = Built::new(args, arch, &commit)?;
        image.write(&folder)?;
    }
    if commit.hash().is_none() {
        println!("There is no commit here: the image says none, and its time is {}.", commit.time());
    } else if commit.is_modified() {
        println!("The tree differs from its commit, so the image does, too; its revision says so.");
    }
    Ok(())
}

/// Writes the image of the lab under its usual name and for this machine, and returns where it is.
pub(crate) fn lab(profile: &str) -> anyhow::Result<PathBuf> {
    let folder = static_build::target_folder()?.join("images");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let args = Args {
        which: Which { image: None, lab: true },
        source: ProgramSource { profile: profile.to_owned(), program: None },
        arch: Vec::new(),
        output: None,
    };
    let commit = Commit::current()?;
    Built::new(&args, Arch::host()?, &commit)?.write(&folder)
}

/// An image in memory.
struct Built<'a> {
    image: Image,
    reference: ImageReference,
    arch: Arch,
    commit: &'a Commit,
    files: Vec<File>,
    documents: Documents,
    request: Request,
}

impl<'a> Built<'a> {
    fn new(args: &Args, arch: Arch, commit: &'a Commit) -> anyhow::Result<Built<'a>> {
        let (image, reference) = (args.which.image(), args.which.reference()?);
        let program = args.source.path(image, arch)?;
        let files = image.files(&program, arch)?;
        let layer = Layer::new(&files, commit.seconds())?;
        let documents = Documents::new(image, arch, commit, layer)?;
        let request = match &args.source.program {
            Some(_) => Request::Given { program: image.package().to_owned() },
            None => {
                let mut command = vec!["cargo".to_owned()];
                command.extend(static_build::arguments(image, arch, &args.source.profile));
                Request::Build { command, profile: args.source.profile.clone() }
            }
        };
        Ok(Built { image, reference, arch, commit, files, documents, request })
    }

    /// Returns where the archive is.
    fn write(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let name = format!("{}-{VERSION}-linux-{}", self.image.title(), self.arch.name());
        let path = |ending: &str| folder.join(format!("{name}.{ending}"));
        let (archive, bill, origin) = (path("tar"), path("cdx.json"), path("provenance.json"));
        let lock = fs::read_to_string(root().join(LOCK)).with_context(|| format!("reading {LOCK}"))?;
        let bill_text = self.bill(&lock)?;
        let named = |path: &Path, text: &str| Digested {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            sha256: sha256(text.as_bytes()),
        };
        let origin_text = self.origin(&lock, named(&bill, &bill_text))?;
        let write =
            |path: &Path, text: &str| fs::write(path, text).with_context(|| format!("writing {}", path.display()));
        write(&bill, &bill_text)?;
        write(&origin, &origin_text)?;
        let file = fs::File::create(&archive).with_context(|| format!("writing {}", archive.display()))?;
        archive::write(&self.documents, &self.reference, self.arch, self.commit.seconds(), BufWriter::new(file))
            .with_context(|| format!("writing {}", archive.display()))?;

        println!("{} for linux/{}", self.reference, self.arch.name());
        println!("  digest             {}", self.documents.manifest.digest);
        let (packed, unpacked) = (self.documents.packed_size(), self.documents.layer.unpacked);
        println!("  size               {} to pull, {} on a node", megabytes(packed), megabytes(unpacked));
        println!("  archive            {}", archive.display());
        println!("  bill of materials  {}", bill.display());
        println!("  provenance         {}", origin.display());
        Ok(archive)
    }

    fn file(&self, name: &str) -> anyhow::Result<&File> {
        self.files.iter().find(|file| file.name == name).with_context(|| format!("{name} is not in the image"))
    }

    fn bill(&self, lock: &str) -> anyhow::Result<String> {
        let (root, packages) = cargo_packages::packages(self.image, self.arch, lock)?;
        let program = self.file(self.image.package())?;
        let ours =
            RustProgram { root: &root, packages: &packages, runtime: &self.runtime(), sha256: sha256(&program.bytes) };
        let mut others = Vec::new();
        for other in self.image.third_party() {
            let bytes = &self.file(other.name())?.bytes;
            let build = GoBuildInfo::of(bytes).with_context(|| format!("looking into {}", other.name()))?;
            others.push(GoProgram { name: other.name(), version: other.version(), sha256: sha256(bytes), build });
        }
        let subject = Subject {
            name: &self.reference.name,
            version: VERSION,
            sha256: self.documents.manifest.hex(),
            time: &self.commit.time(),
        };
        sbom::document(&subject, &ours, &others)
    }

    fn origin(&self, lock: &str, bill: Digested) -> anyhow::Result<String> {
        let digested = |name: String, bytes: &[u8]| Digested { name, sha256: sha256(bytes) };
        let mut materials = vec![digested(LOCK.to_owned(), lock.as_bytes())];
        for other in self.image.third_party() {
            let [go_mod, go_sum] = other.pins();
            materials.push(digested(format!("tools/{}/go.mod", other.name()), go_mod.as_bytes()));
            materials.push(digested(format!("tools/{}/go.sum", other.name()), go_sum.as_bytes()));
        }
        let mut byproducts: Vec<_> =
            self.files.iter().map(|file| digested(file.name.to_owned(), &file.bytes)).collect();
        byproducts.push(bill);
        let facts = Facts {
            image: Digested { name: self.reference.to_string(), sha256: self.documents.manifest.hex().to_owned() },
            commit: self.commit,
            architecture: self.arch.name(),
            request: self.request.clone(),
            materials,
            byproducts,
            versions: self.versions()?,
        };
        facts.statement()
    }

    /// What the program is linked with, if it was built here.
    fn runtime(&self) -> Runtime {
        match self.request {
            Request::Build { .. } => Runtime::of_this_machine(self.arch),
            Request::Given { .. } => Runtime::default(),
        }
    }

    /// What the digest depends on beside the commit.
    fn versions(&self) -> anyhow::Result<Vec<(&'static str, String)>> {
        let mut versions = Vec::new();
        if let Request::Build { .. } = self.request {
            let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
            versions.extend(version(Command::new(rustc)).map(|version| ("rustc", version)));
            versions.extend(version(Command::new(self.arch.compiler())).map(|version| ("cc", version)));
        }
        versions.extend(self.runtime().glibc.map(|version| ("glibc", version)));
        if self.image.third_party().contains(&Program::Descheduler) {
            let build = GoBuildInfo::of(&self.file(Program::Descheduler.name())?.bytes)?;
            versions.push(("go", build.go));
        }
        Ok(versions)
    }
}

/// The first line that a program says about its version.
fn version(mut command: Command) -> Option<String> {
    let output = command.arg("--version").output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}
