//! The images built and run by real engines, in a storage of their own. `make test-images` runs these.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;
use testkit::within;

use super::{static_program, xtask};
use crate::commands::{printed, text};

/// Where engines keep images and containers, and how they run them: without a network, and with what a small machine allows.
struct Engines {
    folder: TempDir,
}

impl Engines {
    fn new() -> Engines {
        let engines = Engines { folder: tempfile::tempdir().unwrap() };
        let path = |name: &str| engines.path(name);
        let storage =
            format!("[storage]\ndriver = \"vfs\"\ngraphroot = \"{}\"\nrunroot = \"{}\"\n", path("images"), path("run"));
        let containers = "[containers]\nnetns = \"none\"\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n\
            [engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n";
        fs::write(path("storage.conf"), storage).unwrap();
        fs::write(path("containers.conf"), containers).unwrap();
        engines
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn prepare<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("CONTAINERS_STORAGE_CONF", self.path("storage.conf"))
            .env("CONTAINERS_CONF", self.path("containers.conf"))
            .env("BUILDAH_ISOLATION", "chroot")
    }

    fn run(&self, program: &str, args: &[&str]) -> Output {
        self.prepare(Command::new(program).args(args)).output().unwrap()
    }

    fn podman(&self, args: &[&str]) -> String {
        printed(&self.run("podman", args)).trim().to_owned()
    }

    fn inspected(&self, image: &str) -> Value {
        let all: Value = serde_json::from_str(&self.podman(&["image", "inspect", image])).unwrap();
        all[0].clone()
    }

    /// Our command, with these engines.
    fn xtask(&self, args: &[&str]) -> String {
        let target = self.folder.path().join("target");
        printed(&self.prepare(&mut xtask(&target, args)).output().unwrap())
    }
}

/// An image to try.
struct Case {
    which: &'static [&'static str],
    title: &'static str,
    program: String,
    archive: String,
}

fn case(engines: &Engines, which: &'static [&'static str], title: &'static str) -> Case {
    let profile = std::env::var("IMAGE_PROFILE").unwrap_or_else(|_| "dev".to_owned());
    let program = static_program(which, &profile).to_str().unwrap().to_owned();
    let image = format!("localhost/{title}:archive");
    let args = ["image-archive", "--program", &program, "--output", &engines.path("out"), "--image", &image];
    let told = engines.xtask(&[&args[..], which].concat());
    println!("{told}");
    let archive = told.lines().find_map(|line| line.trim().strip_prefix("archive ")).unwrap().trim().to_owned();
    Case { which, title, program, archive }
}

/// The archive is loaded, each engine builds the same layer, and all images say the same.
fn all_ways_lead_to_the_same_image(engines: &Engines, case: &Case) {
    engines.podman(&["load", "--input", &case.archive]);
    let ours = engines.inspected(&format!("localhost/{}:archive", case.title));
    let name = engines.path("layout");
    fs::create_dir(&name).unwrap();
    assert!(Command::new("tar").args(["-xf", &case.archive, "-C", &name]).status().unwrap().success());
    let index: Value = serde_json::from_slice(&fs::read(Path::new(&name).join("index.json")).unwrap()).unwrap();
    println!("podman knows {} as {}", index["manifests"][0]["digest"], ours["Digest"]);
    for tool in ["buildah", "podman"] {
        let image = format!("localhost/{}:{tool}", case.title);
        let args = ["image-build", "--tool", tool, "--program", &case.program, "--image", &image];
        engines.xtask(&[&args[..], case.which].concat());
        let theirs = engines.inspected(&image);
        assert_eq!(theirs["RootFS"], ours["RootFS"], "the layer of {tool}");
        for field in ["User", "Architecture", "Os", "Created"] {
            assert_eq!(theirs[field], ours[field], "{field} of {tool}");
        }
        for field in ["Entrypoint", "Cmd"] {
            assert_eq!(theirs["Config"][field], ours["Config"][field], "{field} of {tool}");
        }
        for (label, value) in ours["Labels"].as_object().unwrap() {
            assert_eq!(&theirs["Labels"][label], value, "{label} of {tool}");
        }
        engines.podman(&["image", "rm", &image]);
    }
    assert_eq!(ours["User"], "65532:65532");
}

/// An image with the programs of this machine that must-gather runs, and what they are linked with.
fn base(engines: &Engines) -> &'static str {
    const SCRIPT: &str = r#"for program in /bin/sh bash sleep sync df awk sed tar; do
        file=$(command -v $program)
        for needed in "$file" $(ldd "$(readlink -f "$file")" | grep -o '/[^ )]*'); do
            mkdir -p ".$(dirname "$needed")" && cp -L "$needed" ".$needed"
        done
    done"#;
    let (folder, image) = (engines.path("base"), "localhost/base:test");
    fs::create_dir(&folder).unwrap();
    printed(&Command::new("bash").args(["-euc", SCRIPT]).current_dir(&folder).output().unwrap());
    fs::write(engines.path("Dockerfile"), "FROM scratch\nCOPY base /\n").unwrap();
    printed(&engines.run("buildah", &["build", "--tag", image, &engines.path("")]));
    image
}

/// The image for must-gather, on a base of this machine: nothing is pulled here.
fn gathers(engines: &Engines, operator: &str) {
    let (base, image) = (base(engines), "localhost/must-gather:test");
    let args = ["image-must-gather", "--tool", "podman", "--image", image];
    engines.xtask(&[&args[..], &["--operator-image", operator, "--base-image", base]].concat());
    let help = engines.podman(&["run", "--rm", image, "--help"]);
    assert!(help.contains("--since"), "it is `virt-advisor gather`:\n{help}");
    let tar = engines.podman(&["run", "--rm", "--entrypoint", "tar", image, "--version"]);
    assert!(tar.contains("tar"), "files are copied out with it: {tar}");
}

/// A cluster that does not answer, by plain HTTP.
fn kubeconfig(engines: &Engines) -> String {
    let folder = engines.path("kube");
    fs::create_dir_all(&folder).unwrap();
    let file = Path::new(&folder).join("config");
    let cluster = r#"{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}"#;
    let context = r#"{"name": "c", "context": {"cluster": "c", "user": "u"}}"#;
    let users = r#"{"name": "u", "user": {}}"#;
    let config = format!(
        r#"{{"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{cluster}], "contexts": [{context}], "users": [{users}]}}"#
    );
    fs::write(&file, config).unwrap();
    format!("{folder}:/kube:ro")
}

/// What a program says of a cluster that does not answer.
const UNANSWERED: &str = "Connection refused";

/// Starts a container, waits until its program has looked for its cluster, and tells as which user it runs.
async fn user_of_running(engines: &Engines, image: &str, args: &[&str]) -> u32 {
    let volume = kubeconfig(engines);
    let run = ["run", "--detach", "--read-only", "--volume", &volume, "--env", "KUBECONFIG=/kube/config", image];
    let container = engines.podman(&[&run[..], args].concat());
    let state = |field: &str| engines.podman(&["inspect", "--format", &format!("{{{{.State.{field}}}}}"), &container]);
    let has_told = async || {
        let output = engines.run("podman", &["logs", &container]);
        let log = text(&output.stdout) + &text(&output.stderr);
        let told = log.contains(UNANSWERED);
        assert!(told || state("Running") == "true", "it has ended without {UNANSWERED:?}:\n{log}");
        told.then_some(())
    };
    within(Duration::from_secs(180), "the program in the container looks for its cluster", has_told).await;
    let status = fs::read_to_string(format!("/proc/{}/status", state("Pid"))).unwrap();
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next()).unwrap();
    engines.podman(&["rm", "--force", "--time", "5", &container]);
    user.parse().unwrap()
}

#[tokio::test]
#[ignore = "needs buildah, podman and runc: `make test-images` says what is missing, and runs it"]
async fn the_operator_is_built_and_run() {
    let engines = Engines::new();
    let case = case(&engines, &[], "virt-advisor-operator");
    all_ways_lead_to_the_same_image(&engines, &case);
    let image = "localhost/virt-advisor-operator:archive";
    let version = engines.podman(&["run", "--rm", image, "--version"]);
    assert_eq!(version, concat!("virt-advisor ", env!("CARGO_PKG_VERSION")));
    assert_ne!(user_of_running(&engines, image, &["operator"]).await, 0);
    gathers(&engines, image);
}

#[tokio::test]
#[ignore = "needs buildah, podman and runc: `make test-images` says what is missing, and runs it"]
async fn the_lab_is_built_and_run_with_the_descheduler_and_without_ca_certificates() {
    let engines = Engines::new();
    let case = case(&engines, &["--lab"], "rebalance-lab");
    all_ways_lead_to_the_same_image(&engines, &case);
    let image = "localhost/rebalance-lab:archive";
    let version = engines.podman(&["run", "--rm", image, "--version"]);
    assert_eq!(version, concat!("rebalance-lab ", env!("CARGO_PKG_VERSION")));
    let told = engines.podman(&["run", "--rm", "--entrypoint", "/descheduler", image, "version"]);
    let version = devcluster::tools::Program::Descheduler.version().trim_start_matches('v');
    assert!(told.contains(version), "{told}");
    let args = ["soft-tainter", "--port=0", "--prometheus=http://prometheus.monitoring.svc:9090"];
    assert_ne!(user_of_running(&engines, image, &args).await, 0);
}
