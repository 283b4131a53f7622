//! The commands of the reference's guide, which `docs/lab/reference-commands.md` lists, the test script, and the commands of the other
//! pages, on a running lab.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::symlink,
    path::PathBuf,
    process::{Command, Stdio},
};

use api::VirtualMachine;
use devcluster::Identity;
use kube::Api;
use lab::{
    play::{NewVm, Placement},
    up::{Lab, Options},
};
use tempfile::TempDir;
use testkit::files::root;

const SCALE: f64 = 20.0;

/// The commands that work unchanged, according to the tables of the page.
fn as_they_are() -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/lab/reference-commands.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | = |"));
    rows.map(|(command, _)| command.to_owned()).collect()
}

fn queries() -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/lab/reference-commands.md")).unwrap();
    let (_, block) = page.split_once("```promql\n").unwrap();
    block.split_once("```").unwrap().0.lines().map(str::to_owned).collect()
}

/// A lab, and a shell whose kubectl talks to it.
pub(crate) struct Shell {
    pub(crate) lab: Lab,
    folder: TempDir,
    kubeconfig: PathBuf,
}

impl Shell {
    async fn new(lab: Lab) -> Shell {
        let folder = tempfile::tempdir().unwrap();
        let kubectl = lab.cluster().access().kubectl_command(&Identity::Admin).await.unwrap();
        symlink(kubectl.get_program(), folder.path().join("kubectl")).unwrap();
        let kubeconfig = lab.cluster().access().kubeconfig(&Identity::Admin).await.unwrap();
        Shell { lab, folder, kubeconfig }
    }

    fn bash(&self, line: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("bash");
        command
            .args(["-o", "pipefail", "-c", line])
            .env("PATH", format!("{}:{path}", self.folder.path().display()))
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", self.folder.path())
            .env("PROMETHEUS_URL", self.lab.prometheus_url().unwrap())
            .env("EXPORTER_URL", self.lab.exporter_url())
            .env("PARTS", "processes")
            .env("TIMEOUT", "90")
            .env_remove("CONTEXT")
            .current_dir(root());
        command
    }

    /// What a command prints that has to succeed.
    pub(crate) async fn succeed(&self, line: &str) -> String {
        let mut command = self.bash(line);
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{line}: {told}\n{}", String::from_utf8_lossy(&output.stderr));
        told
    }

    async fn run(&self, line: &str) -> String {
        let told = self.succeed(line).await;
        assert!(!told.trim().is_empty(), "{line} prints nothing");
        told
    }

    /// The first lines of a command that does not end.
    async fn watch(&self, line: &str, count: usize) -> Vec<String> {
        let mut child = self.bash(&format!("exec {line}")).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let read = tokio::task::spawn_blocking(move || lines.take(count).collect::<Result<Vec<_>, _>>());
        let lines = read.await.unwrap().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        lines
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_of_the_guide_work_on_a_running_lab_and_its_test_passes() {
    let lab = Lab::start(Options { time_scale: SCALE, ..Options::default() }, |_| {}).await.unwrap();
    let guest = |number: u32| NewVm {
        name: format!("vm-{number}"),
        cores: 1.0,
        memory_bytes: 2 << 30,
        cpu_use: 0.8,
        memory_use: 0.5,
    };
    let node = |number: u32| Some(format!("kwok-node-{}", 1 + number % 2));
    Placement((0..60).map(|number| (guest(number), node(number))).collect()).create(lab.client()).await.unwrap();
    let shell = Shell::new(lab).await;

    let told = shell.run("./test-closed-loop.sh").await;
    for line in ["ok: all 5 nodes have a score", "ok: VMs were moved for the descheduler", "== all is well"] {
        assert!(told.contains(line), "{told}");
    }

    let vms: Api<VirtualMachine> = Api::default_namespaced(shell.lab.client().clone());
    let pod = vms.get("vm-1").await.unwrap().status.unwrap().pod_name.unwrap();
    let places = [
        ("http://localhost:9090", shell.lab.prometheus_url().unwrap()),
        ("http://localhost:8000", shell.lab.exporter_url()),
        ("http://localhost:8443", shell.lab.descheduler_url().unwrap()),
        ("<vm-name>", "vm-1".to_owned()),
        ("<pod-name>", pod),
    ];
    let commands = as_they_are();
    assert!(commands.len() >= 14, "{commands:?}");
    for command in commands {
        let here = places.iter().fold(command.clone(), |line, (from, to)| line.replace(from, to));
        // The page lists the URL of the descheduler without a command.
        let here = if here.starts_with("http") { format!("curl {here}") } else { here };
        let here = here.replace("curl ", "curl --silent --show-error --fail ");
        match here.ends_with(" -w") {
            true => assert_eq!(shell.watch(&here, 2).await.len(), 2, "{command}"),
            false => drop(shell.run(&here).await),
        }
    }
    let columns = shell.run("kubectl get vm -o wide").await;
    assert!(columns.lines().next().unwrap().to_uppercase().contains("NODE"), "{columns}");
    for query in queries() {
        let url = format!("{}/api/v1/query", shell.lab.prometheus_url().unwrap());
        let line = format!("curl --silent --show-error --fail --get --data-urlencode 'query={query}' {url}");
        let answer = shell.run(&line).await;
        assert!(answer.contains(r#""status":"success""#), "{query}: {answer}");
        // A query with a comparison has no result if no node is over-utilized.
        assert!(query.contains(" > ") || answer.contains(r#""value""#), "{query}: {answer}");
    }
    crate::guides::run_commands(&shell).await;
    shell.lab.shutdown().await;
}
