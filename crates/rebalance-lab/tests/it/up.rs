//! The commands `up`, `status`, `watch`, `load` and `down` as processes.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;
use testkit::poll_blocking;

const TIMEOUT: Duration = Duration::from_secs(180);

const SCENARIO: &str = "
name: rush
step: 2s
duration: 20s
nodes: [{name: n, count: 3}]
vms:
- {name: idle, count: 2, cpu: 0.1, dirtyRate: 1Gbps}
- {name: rush, count: 4, cpu: {ramp: {from: 0.1, to: 0.9, start: 0s, end: 20s}}, on: [n-3]}
events:
- {at: 2s, drain: n-1}
- {at: 6s, uncordon: n-1}
- {at: 8s, fail: n-2}
- {at: 14s, recover: n-2}
- {at: 18s, cordon: n-1}
";

/// The folders of a lab, in which a test finds what the lab leaves behind.
struct Place {
    runtime: TempDir,
    temporary: TempDir,
}

impl Place {
    fn new() -> Place {
        Place { runtime: tempfile::tempdir().unwrap(), temporary: tempfile::tempdir().unwrap() }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rebalance-lab"));
        command.args(args).env("XDG_RUNTIME_DIR", self.runtime.path()).env("TMPDIR", self.temporary.path());
        command.stdin(Stdio::null()).env_remove("LOG_LEVEL");
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn says(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn is_refused(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn survey(&self) -> Value {
        serde_json::from_str(&self.says(&["status", "-o", "json"])).unwrap()
    }

    /// Polls until the survey is as described.
    fn survey_with(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let found = poll_blocking(TIMEOUT, || {
            let survey = self.survey();
            if is_so(&survey) { Ok(survey) } else { Err(survey) }
        });
        found.unwrap_or_else(|survey| panic!("did not happen: {what}: {survey:#}"))
    }

    /// Files of the lab, and processes that it started.
    fn left(&self) -> Vec<String> {
        let files = |folder: &Path| {
            let entries = fs::read_dir(folder).unwrap().flatten();
            entries.map(|entry| entry.path().display().to_string()).collect::<Vec<_>>()
        };
        let mark = format!("TMPDIR={}", self.temporary.path().display()).into_bytes();
        let is_ours = |process: &fs::DirEntry| {
            let environment = fs::read(process.path().join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark)
        };
        let processes = fs::read_dir("/proc").unwrap().flatten().filter(is_ours).map(|process| {
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            format!("{}: {}", process.path().display(), String::from_utf8_lossy(&line).replace('\0', " "))
        });
        processes.chain(files(self.runtime.path())).chain(files(self.temporary.path())).collect()
    }

    /// Polls, because the last process ends a moment after the others.
    fn leaves_nothing(&self) {
        let nothing = poll_blocking(TIMEOUT, || {
            let left = self.left();
            if left.is_empty() { Ok(()) } else { Err(left) }
        });
        nothing.unwrap_or_else(|left| panic!("left behind: {left:#?}"));
    }

    fn up(&self, args: &[&str]) -> Up {
        let mut child = self.command(&[&["up", "--time-scale=20", "--free-ports"], args].concat());
        let mut child = child.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Up { child, output }
    }
}

/// A running `up`. It is killed when dropped.
struct Up {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Up {
    /// Reads until this text was printed, and returns all that was read.
    fn until(&mut self, text: &str) -> String {
        let mut said = String::new();
        while !said.contains(text) {
            assert!(self.output.read_line(&mut said).unwrap() > 0, "it ended without {text:?}: {said}");
        }
        said
    }

    fn last_words(mut self) -> String {
        let mut said = String::new();
        self.output.read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success());
        said
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Holds L7 (loop stops) and L10 (unloaded scenario).
#[test]
fn a_lab_is_started_looked_at_loaded_and_ended_and_leaves_nothing() {
    let place = Place::new();
    assert!(place.is_refused(&["status"]).contains("no lab called lab runs: start one with `rebalance-lab up`"));

    let mut up = place.up(&["--nodes=3", "--vms=20"]);
    let said = up.until("The lab is up.");
    for part in ["kube-apiserver", "prometheus", "vm-controller", "eviction-webhook", "metrics-exporter", "VMs"] {
        assert!(said.contains(&format!("✔ {part} ")), "{part}: {said}");
    }
    assert!(!said.contains('\x1b'), "colors belong on a terminal: {said}");
    let said = up.until("query=descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m");
    assert!(said.contains("export KUBECONFIG=") && said.contains("rebalance-lab logs descheduler -f"), "{said}");

    let moves = |survey: &Value| survey["migrations"].as_array().map_or(0, Vec::len);
    let survey = place.survey_with("the descheduler moves a VM", |survey| {
        let parts = survey["parts"].as_array().unwrap();
        parts.iter().all(|part| part["ready"] == true) && moves(survey) > 0 && !survey["spread"].is_null()
    });
    assert_eq!(survey["nodes"].as_array().unwrap().len(), 3);
    assert_eq!((&survey["vms"]["all"], &survey["vms"]["running"]), (&20.into(), &20.into()));
    assert_eq!(survey["migrations"][0]["why"], "Descheduler");
    assert!(survey["nodes"].as_array().unwrap().iter().all(|node| !node["bucket"].is_null()), "{survey:#}");
    assert_eq!(survey["problems"], serde_json::json!([]));

    let table = place.says(&["status"]);
    for text in ["PART ", "NODE ", "MIGRATED ", "kwok-node-3 ", "Spread of CPU use: 0.", "✔ ready"] {
        assert!(table.contains(text), "{text}: {table}");
    }
    assert!(!table.contains('\x1b'), "{table}");
    watch_shows(&place);

    let refused = place.is_refused(&["up"]);
    assert!(refused.contains("a lab called lab runs already"), "{refused}");
    assert!(place.says(&["logs", "descheduler"]).contains("evict"));
    assert!(place.says(&["logs", "vm-controller"]).contains("migration of default/vm-"));
    assert!(!place.says(&["logs", "apiserver"]).is_empty());
    assert!(place.is_refused(&["logs", "kubelet"]).contains("there is no part kubelet; the parts are etcd, kube-"));

    assert_eq!(place.says(&["load", "--cpu=0.2", "--vms=vm-00*"]), "9 VMs changed.\n");
    assert!(place.is_refused(&["load", "--cpu=0.2", "--vms=x"]).contains("no VM is called x"));
    assert!(place.is_refused(&["load", "hotspot"]).contains("has 8 nodes and the lab 3: start it with --nodes 8"));
    let file = place.runtime.path().join("rush.yaml");
    fs::write(&file, SCENARIO).unwrap();
    let said = place.says(&["load", file.to_str().unwrap()]);
    fs::remove_file(file).unwrap();
    assert!(said.contains("6 created and running, 0 there already") && said.contains("4 VMs changed"), "{said}");
    assert!(said.contains("The scenario is over"), "{said}");
    assert!(said.contains("2 write to their memory at a rate of their own"), "{said}");
    for what in [
        "node kwok-node-1 is closed",
        "VMs leave node kwok-node-1",
        "node kwok-node-1 is open",
        "node kwok-node-2 is lost",
        "node kwok-node-2 is there",
    ] {
        assert!(said.contains(what), "{what}: {said}");
    }
    assert!(said.ends_with("Nodes that it left closed: kwok-node-1\n"), "{said}");
    place.survey_with("all VMs run again", |survey| survey["vms"]["running"] == 26);
    assert_eq!(place.survey()["vms"]["all"], 26);

    assert_eq!(place.says(&["down"]), "Lab lab is down.\n");
    assert!(up.last_words().ends_with("Ending the lab ...\nThe lab is down.\n"));
    place.leaves_nothing();

    // A lab that is killed during its start leaves a record without a process.
    let mut killed = place.up(&["--empty"]);
    killed.until("✔ kube-apiserver");
    assert!(place.is_refused(&["status"]).contains("lab lab is still starting"));
    drop(killed);
    assert!(place.is_refused(&["down"]).contains("no lab called lab runs"));
    place.leaves_nothing();
}

/// Without a terminal, `watch` prints the whole survey after each change.
fn watch_shows(place: &Place) {
    let mut watch = place.command(&["watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(watch.stdout.take().unwrap());
    let lines: Vec<String> =
        output.lines().map_while(Result::ok).take_while(|line| !line.starts_with("VMs: ")).collect();
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert!(lines.iter().any(|line| line.starts_with("kwok-node-1 ")), "{lines:#?}");
}
