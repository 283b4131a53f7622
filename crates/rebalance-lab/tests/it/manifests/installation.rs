//! Parts of the lab as processes, each with the arguments and the service account of its Deployment.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use devcluster::{Cluster, Identity, LogPosition, RunningProgram};
use kube::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{args, objects, one};

pub(super) const GRACE: Duration = Duration::from_secs(60);

/// A cluster with manifests of `config/lab`, and processes in the place of their pods.
pub(super) struct Installation {
    pub(super) cluster: Cluster,
    pub(super) client: Client,
    pub(super) folder: TempDir,
    start: LogPosition,
    processes: Vec<RunningProgram>,
}

impl Installation {
    pub(super) async fn new(cluster: Cluster) -> Installation {
        let client = cluster.access().client().await.unwrap();
        let start = cluster.audit().position(&client).await.unwrap();
        Installation { cluster, client, folder: tempfile::tempdir().unwrap(), start, processes: Vec::new() }
    }

    pub(super) fn write(&self, name: &str, text: &str) -> String {
        let file = self.folder.path().join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    }

    pub(super) async fn kubectl(&self, args: &[&str]) -> String {
        let output = self.cluster.access().kubectl(&Identity::Admin, args).await.unwrap();
        assert!(output.status.success(), "kubectl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(super) async fn apply(&self, objects: &[Value]) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
        let file = self.write("apply.json", &list);
        self.kubectl(&["apply", "--server-side", "-f", &file]).await;
    }

    /// Runs a program as the service account of a Deployment.
    pub(super) async fn run(
        &mut self,
        deployment: &Value,
        name: &'static str,
        program: &Path,
        args: &[String],
    ) -> PathBuf {
        let who = account(deployment);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let process = self.cluster.access().run(&who, name, program, &args).await.unwrap();
        let log = process.log().to_owned();
        self.processes.push(process);
        log
    }

    /// Runs one of our parts with the arguments of its container. Like its image, it has no CA certificates.
    pub(super) async fn part(
        &mut self,
        file: &str,
        name: &'static str,
        changes: &[(&str, &str)],
        more: &[&str],
    ) -> PathBuf {
        let deployment = one(file, "Deployment", name);
        let mut words = vec!["SSL_CERT_FILE=/nowhere".to_owned(), env!("CARGO_BIN_EXE_rebalance-lab").to_owned()];
        words.extend(args(&deployment, name, changes));
        words.extend(more.iter().map(|&arg| arg.to_owned()));
        self.run(&deployment, name, Path::new("/usr/bin/env"), &words).await
    }

    pub(super) async fn stop(&mut self) {
        for process in self.processes.drain(..).rev() {
            process.stop(GRACE).await.unwrap();
        }
    }

    /// Checks that RBAC refused `account` nothing. Returns the rights that `file` gives it and that it has not used.
    pub(super) async fn unused(&self, file: &str, account: &Identity) -> Vec<String> {
        let all = self.cluster.audit().since(self.start, &self.client).await.unwrap();
        let user = account.to_string();
        let by: Vec<_> = all.into_iter().filter(|request| request.user == user).collect();
        assert!(!by.is_empty(), "{user} has done nothing");
        let refused: BTreeSet<_> = by.iter().filter(|it| it.lacks_right).map(ToString::to_string).collect();
        assert!(refused.is_empty(), "{refused:#?}");
        let Identity::ServiceAccount { namespace, name } = account else { panic!("{account}") };
        let is_bound = |binding: &Value, role: &Value| {
            let subject = &binding["subjects"][0];
            subject["name"] == *name
                && subject["namespace"] == *namespace
                && binding["roleRef"]["name"] == role["metadata"]["name"]
                && binding["roleRef"]["kind"] == role["kind"]
        };
        let objects = objects(file);
        let roles = objects.iter().filter(|role| objects.iter().any(|binding| is_bound(binding, role)));
        let (mut unused, watch) = (Vec::new(), json!("watch"));
        for rule in roles.flat_map(|role| role["rules"].as_array().unwrap()) {
            let (group, resource) = (rule["apiGroups"][0].as_str().unwrap(), rule["resources"][0].as_str().unwrap());
            for verb in rule["verbs"].as_array().unwrap() {
                // The versions of client and server decide whether a watch begins with a list.
                let verb = if verb == "list" { &watch } else { verb };
                let is_this = |it: &&devcluster::AuditedRequest| {
                    let whole = [&*it.resource, &*it.subresource].join("/");
                    it.group == group && whole.trim_end_matches('/') == resource && it.verb == *verb
                };
                if !by.iter().any(|it| is_this(&it)) {
                    unused.push(format!("{} {resource}", verb.as_str().unwrap()));
                }
            }
        }
        unused
    }
}

pub(super) fn account(deployment: &Value) -> Identity {
    let name = deployment["spec"]["template"]["spec"]["serviceAccountName"].as_str().unwrap();
    Identity::service_account(deployment["metadata"]["namespace"].as_str().unwrap(), name)
}
