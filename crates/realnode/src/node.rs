//! A running node with its control plane.

use std::{
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::Instant,
};

use anyhow::Context;
use devcluster::{Cluster, Identity, RunningProgram, tools, tools::Program};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};

use crate::{containerd, dns, kubelet, machine};

/// Of the node, and of the cgroups below which its pods are.
pub const NAME: &str = "virt-advisor-node";

const STATE: [&str; 3] = [
    "get pods --all-namespaces -o wide",
    "get events --all-namespaces --sort-by=.lastTimestamp",
    "describe node virt-advisor-node",
];

#[derive(Debug)]
pub struct Node {
    cluster: Cluster,
    kubeconfig: PathBuf,
    kubectl: PathBuf,
    programs: Vec<RunningProgram>,
    archives: PathBuf,
}

impl Node {
    /// Starts everything in the namespaces of this process. Returns when pods run and names are resolved.
    pub(crate) async fn start(folder: &Path) -> anyhow::Result<Node> {
        let start = Instant::now();
        machine::prepare(folder)?;
        let builder = Cluster::builder().node_address(machine::ADDRESS).scheduler().controllers(&["*"]);
        let (cluster, containerd) = tokio::join!(builder.start(), containerd::start(folder));
        let cluster = cluster?;
        let mut programs = vec![containerd?];
        let archives = folder.join("images");
        for archive in fs::read_dir(&archives).with_context(|| archives.display().to_string())? {
            let path = archive?.path();
            if path.extension().is_some_and(|ending| ending == "tar") {
                containerd::import(&path)?;
            }
        }
        programs.push(kubelet::start(&cluster, folder)?);
        programs.push(kubelet::start_proxy(&cluster, folder)?);
        let kubeconfig = cluster.access().kubeconfig(&Identity::Admin).await?;
        let node = Node { cluster, kubeconfig, kubectl: tools::ensure(Program::Kubectl)?, programs, archives };
        let objects = folder.join("dns.json");
        fs::write(&objects, dns::objects().to_string())?;
        node.kubectl(&["apply", "--server-side", "-f", &objects.display().to_string()]);
        node.kubectl(&["wait", "--for=create", &format!("node/{NAME}"), "--timeout=180s"]);
        node.kubectl(&["wait", "--for=condition=Ready", &format!("node/{NAME}"), "--timeout=180s"]);
        // A kubelet may not say this of itself.
        node.kubectl(&["label", "node", NAME, "node-role.kubernetes.io/control-plane="]);
        node.rollout(dns::NAMESPACE, dns::NAME);
        println!("node: ready, with names, after {:.1} s", start.elapsed().as_secs_f64());
        Ok(node)
    }

    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Of the administrator.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Runs kubectl, which has to succeed, and returns what it printed.
    pub fn kubectl(&self, args: &[&str]) -> String {
        let output = self.try_kubectl(args);
        let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        assert!(output.status.success(), "kubectl {}:\n{out}{err}", args.join(" "));
        out
    }

    /// Runs kubectl, which may fail.
    pub fn try_kubectl(&self, args: &[&str]) -> Output {
        let output = self.kubectl_command().args(args).stdin(Stdio::null()).output();
        output.unwrap_or_else(|error| panic!("kubectl {}: {error}", args.join(" ")))
    }

    pub fn kubectl_command(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.env("KUBECONFIG", &self.kubeconfig).env("NO_COLOR", "1");
        command
    }

    /// Waits until all replicas of a Deployment are the newest ones and ready.
    pub fn rollout(&self, namespace: &str, deployment: &str) {
        let deployment = format!("deployment/{deployment}");
        self.kubectl(&["-n", namespace, "rollout", "status", &deployment, "--timeout=300s"]);
    }

    /// Has connections to a port of loopback go to a NodePort, as kind publishes ports of its container.
    pub async fn publish(&self, port: u16, node_port: u16) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        let listener = listener.unwrap_or_else(|error| panic!("listening on port {port}: {error}"));
        // Ends with the runtime of the test.
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                tokio::spawn(async move {
                    if let Ok(mut server) = TcpStream::connect((machine::ADDRESS, node_port)).await {
                        let _ = copy_bidirectional(&mut client, &mut server).await;
                    }
                });
            }
        });
    }

    /// The folder into which archives of images were written.
    pub fn archives(&self) -> &Path {
        &self.archives
    }

    /// Makes another image known to the kubelet.
    pub fn import(&self, archive: &Path) {
        containerd::import(archive).unwrap_or_else(|error| panic!("{error:#}"));
    }
}

impl Drop for Node {
    /// Its logs are removed with it, so a failed test shows them.
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        for line in STATE {
            let output = self.try_kubectl(&line.split(' ').collect::<Vec<_>>());
            eprintln!("== kubectl {line}\n{}", String::from_utf8_lossy(&output.stdout));
        }
        for program in &self.programs {
            eprintln!("== {}\n{}", program.log().display(), program.log_tail());
        }
    }
}
