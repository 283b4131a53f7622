//! `rebalance-lab import` of a running lab, through its real API server and its real Prometheus.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, ChildStdout, Command, Output, Stdio},
    time::Duration,
};

use api::{VirtualMachine, virtual_machine::Phase};
use kube::{
    Api, Client, Config, ResourceExt,
    api::ListParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use sim::{
    ClusterModel, LoadTimeline,
    scenario::{Load, Scenario, parse, text_of},
};
use tempfile::TempDir;
use testkit::poll_blocking;

const TIMEOUT: Duration = Duration::from_secs(120);
/// How far an imported load may be from the one that the lab plays, as a share of the VM: samples are rounded to
/// thousandths, and a rate is that of whole scrapes.
const CPU_TOLERANCE: f64 = 0.03;
const MEMORY_TOLERANCE: f64 = 0.002;
/// The same for what nodes use themselves, which is nothing in a lab.
const NODE_TOLERANCE: f64 = 0.03;

struct Lab {
    folder: TempDir,
    up: Child,
    /// Kept open: a lab that cannot print ends.
    output: BufReader<ChildStdout>,
    kubeconfig: String,
}

impl Lab {
    fn start() -> Lab {
        let folder = tempfile::tempdir().unwrap();
        let args = ["up", "--nodes=3", "--vms=12", "--time-scale=20", "--free-ports", "--thresholds=high"];
        let mut up = command(&folder, &args).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(up.stdout.take().unwrap());
        let mut said = String::new();
        while !said.contains("export KUBECONFIG=") {
            assert!(output.read_line(&mut said).unwrap() > 0, "it ended: {said}");
        }
        let kubeconfig = said.split("export KUBECONFIG=").nth(1).unwrap().lines().next().unwrap().trim().to_owned();
        Lab { folder, up, output, kubeconfig }
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn run(&self, args: &[&str]) -> Output {
        command(&self.folder, args).output().unwrap()
    }

    fn says(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Imports until the whole span is measured and nothing moved meanwhile. The rate of a counter that has just begun is too low.
    fn import(&self, file: &str, is_as_played: impl Fn(&Scenario) -> Result<(), String>) -> String {
        let args = ["import", "--lab=lab", "--span=15s", "--step=3s", "-o", file];
        let settled = poll_blocking(TIMEOUT, || {
            let said = self.says(&args);
            let unsettled = ["came during the span", "not measured", "moved during the span", "missing in between"];
            if unsettled.iter().any(|words| said.contains(words)) {
                return Err(said);
            }
            is_as_played(&scenario(file)).map(|()| said)
        });
        settled.unwrap_or_else(|said| panic!("the load is not measured: {said}"))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.run(&["down"]);
        let _ = self.up.kill();
        let _ = self.up.wait();
        let _ = self.output.buffer();
    }
}

fn command(folder: &TempDir, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rebalance-lab"));
    command.args(args).env("XDG_RUNTIME_DIR", folder.path()).env("TMPDIR", folder.path());
    command.stdin(Stdio::null()).env_remove("LOG_LEVEL");
    command
}

async fn vms(kubeconfig: &str) -> Vec<VirtualMachine> {
    let read = Kubeconfig::read_from(kubeconfig).unwrap();
    let mut config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
    config.proxy_url = None;
    let api: Api<VirtualMachine> = Api::all(Client::try_from(config).unwrap());
    api.list(&ListParams::default()).await.unwrap().items
}

fn scenario(path: impl AsRef<Path>) -> Scenario {
    parse(&text_of(std::fs::read(path).unwrap()).unwrap()).unwrap().remove(0)
}

/// Whether nodes, sizes and loads are within the tolerances above at every step, or what is not.
fn is_as_played(scenario: &Scenario, vms: &[VirtualMachine]) -> Result<(), String> {
    let model = ClusterModel::new(scenario).unwrap();
    let mut load = LoadTimeline::new(&model, 0);
    for step in 0..model.steps() {
        load.advance(step);
        for (number, [cpu, memory]) in (0..).zip(load.shares()) {
            let vm = model.vm(number);
            let object = vms.iter().find(|object| object.name_any() == vm.name).unwrap();
            let (size, played) = (&object.spec.resources, &object.spec.utilization);
            let status = object.status.as_ref().unwrap();
            let holds = (cpu - played.cpu.value().unwrap()).abs() <= CPU_TOLERANCE
                && (memory - played.memory.value().unwrap()).abs() <= MEMORY_TOLERANCE
                && (vm.cores, vm.memory_bytes) == (size.cpu.cores().unwrap(), size.memory.bytes().unwrap())
                && status.phase == Some(Phase::Running)
                && vm.node.map(|node| model.node_name(node)) == status.node_name.as_deref();
            if !holds {
                return Err(format!("{vm:?} at step {step}: {cpu} and {memory}, and the lab says {object:?}"));
            }
        }
    }
    Ok(())
}

#[test]
fn a_lab_that_is_imported_has_its_nodes_its_vms_and_their_loads() {
    let lab = Lab::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let file = lab.file("imported.gz");
    let said = lab.import(&file, |imported| is_as_played(imported, &runtime.block_on(vms(&lab.kubeconfig))));
    for line in [
        "CPU use of VMs            found       12  kubevirt_vmi_cpu_usage_seconds_total",
        "memory use of VMs         found       12  kubevirt_vmi_memory_resident_bytes",
        "CPU use of nodes          found        3  node_cpu_seconds_total",
        "CPU pressure of nodes     found        3  node_pressure_cpu_waiting_seconds_total",
        "memory use of nodes       found        3  node_memory_MemAvailable_bytes",
        "memory pressure of nodes  found        3  node_pressure_memory_waiting_seconds_total",
        "3 nodes, 12 VMs (VirtualMachines of the lab)",
    ] {
        assert!(said.lines().any(|found| found == line), "{line}: {said}");
    }
    let imported = scenario(&file);
    for node in &imported.nodes {
        assert_eq!((node.cores, node.memory.0, node.cordoned), (32.0, 128 << 30, false), "{}", node.name);
        for own in [&node.own_load.cpu, &node.own_load.memory] {
            let most = match own {
                Load::Constant(value) => *value,
                Load::Samples(samples) => samples.values.shares().fold(0.0, f64::max),
                other => panic!("{other:?}"),
            };
            assert!(most <= NODE_TOLERANCE, "{}: {most}", node.name);
        }
        assert!(node.measured.is_some() && node.reserved.memory.is_none(), "{node:?}");
    }

    // The file opens wherever a scenario does.
    assert!(lab.says(&["sim", "run", &file, "--steps=3"]).starts_with("scenario      imported: 3 nodes, 12 VMs"));
    assert!(lab.says(&["sim", "classify", &file, "-a", "k3"]).contains("kwok-node-3"));
    assert!(lab.says(&["sim", "compare", &file, "--algorithms=k3", "--seeds=2", "--steps=2"]).contains("imported"));
    assert!(lab.says(&["sim", "explain", &file, "kwok-node-1"]).starts_with("kwok-node-1 of imported"));

    // Without names, twice the same.
    let [first, second] = ["first.json", "second.json"].map(|name| lab.file(name));
    let hidden = |file: &str| {
        lab.says(&["import", "--lab=lab", "--span=3s", "--step=3s", "--anonymize", "-o", file]);
        let text = std::fs::read_to_string(file).unwrap();
        assert!(!text.contains("kwok") && !text.contains("vm-00"), "{text}");
        let mut names: Vec<String> = scenario(file).vms.into_iter().map(|vm| vm.name).collect();
        names.sort();
        names
    };
    assert_eq!(hidden(&first), hidden(&second));

    // Without Prometheus and without metrics.k8s.io, objects say what they can.
    let snapshot = lab.file("snapshot.gz");
    let said = lab.says(&["import", "--kubeconfig", &lab.kubeconfig, "-o", &snapshot]);
    assert!(said.contains("12 VMs use what their object states"), "{said}");
    assert_eq!(scenario(&snapshot).vms.len(), 12);

    let refused = lab.run(&["import", "--lab=lab", "--step=1h", "--span=1m", "-o", &snapshot]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--step 1h is longer than --span 1m"));
    let refused = lab.run(&["import", "--lab=lab", "--span=30d", "--scenario-step=1s", "-o", &snapshot]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("a scenario has at most 1000000"));
}
