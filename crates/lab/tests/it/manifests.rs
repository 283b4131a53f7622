//! The manifests of the lab: they are current, a real API server accepts them, and the scripts apply them.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Output},
};

use devcluster::{Cluster, Identity};
use tempfile::TempDir;
use testkit::files::{documents, root};

use crate::platform::blank;

const FOLDER: &str = "config/lab";
/// In the order in which the script applies them.
const MANIFESTS: [&str; 11] = [
    "virtualmachine-crd.yaml",
    "kwok-nodes.yaml",
    "prometheus.yaml",
    "prometheus-rules.yaml",
    "metrics-exporter.yaml",
    "vm-controller.yaml",
    "eviction-webhook.yaml",
    "descheduler.yaml",
    "descheduler-policy.yaml",
    "descheduler-operator.yaml",
    "example-vms.yaml",
];
/// The other programs that the scripts need.
const UTILITIES: [&str; 9] = ["bash", "cat", "dirname", "env", "grep", "jq", "mktemp", "rm", "sed"];

#[test]
fn the_committed_manifests_are_up_to_date() {
    for (path, expected) in lab::manifests::files() {
        let committed = fs::read_to_string(root().join(path)).unwrap_or_default();
        assert!(committed == expected, "{path} is out of date: run `make generate` and commit the result");
    }
}

/// Holds L11 (broken installation).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_server_accepts_every_manifest() {
    let (cluster, _) = blank(Cluster::builder()).await;
    let folder = tempfile::tempdir().unwrap();
    let kubectl = async |args: &[&str], file: &Path| {
        let args = [args, &["-f", file.to_str().unwrap()]].concat();
        let output = cluster.access().kubectl(&Identity::Admin, &args).await.unwrap();
        assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    // A dry run of other objects needs their namespaces and definitions.
    for name in MANIFESTS {
        let path = root().join(FOLDER).join(name);
        let first = documents(&path).into_iter().filter(|object| {
            let kind = object["kind"].as_str();
            matches!(kind, Some("Namespace" | "CustomResourceDefinition"))
        });
        for object in first {
            let file = folder.path().join("first.json");
            fs::write(&file, object.to_string()).unwrap();
            kubectl(&["apply", "--server-side"], &file).await;
        }
    }
    let args = ["wait", "--for", "condition=Established", "crd", "virtualmachines.simulation.node-classifier.io"];
    let established = cluster.access().kubectl(&Identity::Admin, &args).await.unwrap();
    assert!(established.status.success(), "{established:?}");
    for name in MANIFESTS {
        let path = root().join(FOLDER).join(name);
        let count = documents(&path).len();
        let told = kubectl(&["apply", "--server-side", "--dry-run=server", "--validate=strict"], &path).await;
        assert_eq!(told.lines().count(), count, "{told}");
        let told = kubectl(&["apply", "--dry-run=server"], &path).await;
        assert_eq!(told.lines().count(), count, "{told}");
    }
    let folder = root().join(FOLDER);
    let all = cluster.access().kubectl(&Identity::Admin, &["kustomize", folder.to_str().unwrap()]).await.unwrap();
    assert!(all.status.success(), "{}", String::from_utf8_lossy(&all.stderr));
}

/// A PATH with programs that record their calls, and with the utilities that the scripts need.
struct KindSetup {
    folder: TempDir,
}

impl KindSetup {
    /// `engines` are the installed container engines. One that begins with `!` fails.
    fn new(engines: &[&str], kind: &str, clusters: &str) -> KindSetup {
        let setup = KindSetup { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(setup.folder.path().join("bin")).unwrap();
        for name in UTILITIES {
            let found = ["/usr/bin", "/bin", "/usr/local/bin"].iter().map(|folder| Path::new(folder).join(name));
            let Some(found) = found.into_iter().find(|path| path.exists()) else { continue };
            symlink(found, setup.folder.path().join("bin").join(name)).unwrap();
        }
        let note = "echo \"${0##*/} $*\" >> \"$CALLS\"\n";
        for engine in engines {
            let answer = if engine.starts_with('!') { "[ \"$1\" != ps ]\n" } else { "" };
            setup.program(engine.trim_start_matches('!'), &format!("{note}{answer}"));
        }
        let version = format!("if [ \"$1\" = version ]; then echo '{kind}'; exit; fi\n");
        let list = format!("if [ \"$1 $2\" = 'get clusters' ]; then echo '{clusters}'; exit; fi\n");
        let provider = "echo \"with $KIND_EXPERIMENTAL_PROVIDER\" >> \"$CALLS\"\n";
        setup.program("kind", &format!("{version}{list}{provider}{note}"));
        setup.program("kubectl", note);
        setup.program("make", note);
        setup
    }

    fn program(&self, name: &str, body: &str) {
        let file = self.folder.path().join("bin").join(name);
        fs::write(&file, format!("#!/usr/bin/env bash\n{body}")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run(&self, args: &[&str], env: &[(&str, &str)]) -> Run {
        let calls = self.folder.path().join("calls");
        let output = Command::new(self.folder.path().join("bin/bash"))
            .arg(root().join("setup-kind-env.sh"))
            .args(args)
            .env_clear()
            .env("PATH", self.folder.path().join("bin"))
            .env("CALLS", &calls)
            .envs(env.iter().copied())
            .output()
            .unwrap();
        Run { output, calls: fs::read_to_string(calls).unwrap_or_default() }
    }
}

struct Run {
    output: Output,
    calls: String,
}

impl Run {
    fn succeeded(&self) -> &Run {
        assert!(self.output.status.success(), "{}\n{}", self.told(), self.calls);
        self
    }

    fn failed(&self, why: &str) {
        assert_eq!(self.output.status.code(), Some(1), "{}", self.told());
        assert!(self.told().contains(why), "{}", self.told());
        assert!(!self.calls.contains("create cluster"), "{}", self.calls);
    }

    fn told(&self) -> String {
        String::from_utf8_lossy(&[&*self.output.stdout, &*self.output.stderr].concat()).into_owned()
    }

    fn calls(&self, call: &str) -> &Run {
        assert!(self.calls.lines().any(|line| line.starts_with(call)), "no {call:?} in\n{}", self.calls);
        self
    }

    fn never_calls(&self, call: &str) -> &Run {
        assert!(!self.calls.lines().any(|line| line.starts_with(call)), "{call:?} in\n{}", self.calls);
        self
    }
}

const RECENT: &str = "kind v0.30.0 go1.24.6 linux/amd64";
const CREATE: &str = "kind create cluster --name node-classifier-sim --image kindest/node:v1.34.0 --config ";

/// How the script has its image built.
fn make_image(engine: &str) -> String {
    let (folder, image) = (root().join(FOLDER).canonicalize().unwrap(), lab::manifests::IMAGE);
    let root = folder.ancestors().nth(2).unwrap().display();
    format!("make -C {root} --no-print-directory lab-image IMG={image} CONTAINER_TOOL={engine}")
}

#[test]
fn docker_is_used_where_it_answers() {
    let run = KindSetup::new(&["docker", "podman"], RECENT, "other").run(&[], &[]);
    let build = make_image("docker");
    run.succeeded().calls("with docker").calls(&build).calls(CREATE);
    run.calls(&format!("kind load docker-image {} --name node-classifier-sim", lab::manifests::IMAGE));
    run.never_calls("podman").never_calls("kind delete");
    assert!(run.told().contains("http://localhost:9090"), "{}", run.told());
    assert!(!run.told().contains("warning"), "{}", run.told());
}

#[test]
fn podman_is_used_where_docker_is_missing_or_does_not_answer_or_when_it_is_asked_for() {
    for (engines, env) in [
        (&["podman"][..], &[][..]),
        (&["!docker", "podman"], &[]),
        (&["docker", "podman"], &[("KIND_EXPERIMENTAL_PROVIDER", "podman")]),
    ] {
        let run = KindSetup::new(engines, RECENT, "").run(&[], env);
        run.succeeded().calls("with podman").calls(&make_image("podman")).calls("podman save --output");
        run.calls("kind load image-archive").calls(CREATE).never_calls(&make_image("docker"));
    }
}

#[test]
fn what_is_missing_or_too_old_is_told_before_anything_is_made() {
    let old = "kind v0.19.0 go1.20.4 linux/amd64";
    KindSetup::new(&["docker"], old, "")
        .run(&[], &[])
        .failed("error: kind v0.19.0 is too old: v0.20.0 is needed, v0.30.0 recommended");
    KindSetup::new(&["docker"], "no idea", "").run(&[], &[]).failed("cannot tell the version of kind");
    KindSetup::new(&[], RECENT, "").run(&[], &[]).failed("neither docker nor podman answers");
    KindSetup::new(&["!docker", "!podman"], RECENT, "").run(&[], &[]).failed("neither docker nor podman answers");
    let wish = |engine| [("KIND_EXPERIMENTAL_PROVIDER", engine)];
    let docker = KindSetup::new(&["docker"], RECENT, "");
    docker.run(&[], &wish("podman")).failed("KIND_EXPERIMENTAL_PROVIDER is podman, which is not installed");
    docker.run(&[], &wish("nerdctl")).failed("docker and podman are supported");
    docker.run(&["--fast"], &[]).failed("unknown option --fast");
}

#[test]
fn a_kind_that_is_old_but_not_too_old_is_used_with_a_warning() {
    for version in ["0.20.0", "0.29.9", "0.20"] {
        let run = KindSetup::new(&["docker"], &format!("kind v{version} go1.20.4 linux/amd64"), "").run(&[], &[]);
        run.succeeded().calls(CREATE);
        assert!(run.told().contains("v0.30.0 or later is recommended"), "{}", run.told());
    }
    for version in ["0.30.0", "0.100.1", "1.0.0-alpha"] {
        let run = KindSetup::new(&["docker"], &format!("kind v{version} go1.20.4 linux/amd64"), "").run(&[], &[]);
        assert!(!run.succeeded().told().contains("recommended"), "{}", run.told());
    }
}

#[test]
fn a_cluster_that_is_there_is_kept_when_nobody_can_be_asked() {
    let run = KindSetup::new(&["docker"], RECENT, "node-classifier-sim").run(&[], &[]);
    run.succeeded().never_calls("kind create").never_calls("kind delete").calls("kind export kubeconfig");
}

/// Holds L11 (broken installation).
#[test]
fn everything_that_is_applied_is_there_and_everything_there_is_applied() {
    let policy = KindSetup::new(&["docker"], RECENT, "").run(&[], &[]);
    let operator = KindSetup::new(&["docker"], RECENT, "").run(&["--operator", "--no-vms"], &[]);
    policy.succeeded().never_calls("kubectl --context kind-node-classifier-sim -n openshift-");
    operator.succeeded().never_calls("kubectl --context kind-node-classifier-sim -n kube-descheduler");
    operator.never_calls("kubectl --context kind-node-classifier-sim cordon");
    let applied = |run: &Run| -> Vec<String> {
        let files = run.calls.lines().filter_map(|line| line.split_once(" -f ")).map(|(_, file)| file.to_owned());
        files.inspect(|file| assert!(Path::new(file).exists(), "{file}")).collect()
    };
    let applied = [applied(&policy), applied(&operator)].concat();
    for name in MANIFESTS {
        assert!(applied.iter().any(|file| Path::new(file).ends_with(name)), "{name} is never applied");
    }
    let namespaced = |name: &str| policy.calls.lines().any(|line| line.ends_with(name));
    assert!(namespaced("label nodes -l type=kwok kubevirt.io/schedulable=true --overwrite"));
    assert!(namespaced("uncordon kwok-node-3 kwok-node-4 kwok-node-5"));
}

#[test]
fn ports_of_the_cluster_lead_to_the_services_that_the_guide_names() {
    let kind = &documents(&root().join(FOLDER).join("kind-config.yaml"))[0];
    let mappings = kind["nodes"][0]["extraPortMappings"].as_array().unwrap().clone();
    let services: Vec<_> = MANIFESTS.iter().flat_map(|name| documents(&root().join(FOLDER).join(name))).collect();
    for (name, host) in
        [("prometheus", 9090), ("metrics-exporter", 8000), ("descheduler", 8443), ("descheduler-operator", 8443)]
    {
        let service = services.iter().find(|it| it["kind"] == "Service" && it["metadata"]["name"] == name).unwrap();
        let port = &service["spec"]["ports"][0]["nodePort"];
        let leads = |mapping: &serde_json::Value| mapping["hostPort"] == host && mapping["containerPort"] == *port;
        assert!(mappings.iter().any(leads), "{name}: {port}");
    }
}

#[test]
fn the_script_builds_the_image_that_the_manifests_name() {
    let script = fs::read_to_string(root().join(FOLDER).join("setup-kind-env.sh")).unwrap();
    assert!(script.contains(&format!("readonly IMAGE={}\n", lab::manifests::IMAGE)));
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    assert!(makefile.lines().any(|line| line.starts_with("lab-image:")), "what the script calls");
}

#[test]
fn the_scripts_are_bash() {
    for name in ["setup-kind-env.sh", "test-closed-loop.sh"] {
        for path in [root().join(FOLDER).join(name), root().join(name)] {
            let checked = Command::new("bash").arg("-n").arg(&path).output().unwrap();
            assert!(checked.status.success(), "{name}: {}", String::from_utf8_lossy(&checked.stderr));
            assert!(fs::metadata(&path).unwrap().permissions().mode() & 0o111 != 0, "{name} cannot be run");
        }
    }
}
