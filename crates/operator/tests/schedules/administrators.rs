//! Administrators, who edit configurations, targets and inputs, and who install and remove components. An edit depends on
//! the seed, on its number and on what is stored at that moment.

mod approvals;

use std::sync::OnceLock;

use http::Method;
use serde_json::{Value, json};

use crate::{
    api::{
        kinds::{named, resources},
        merge_patch,
        store::{Key, Store},
    },
    client::{APPLY, JSON, MERGE, exists},
    cluster::Server,
    fault_plan::FaultPlan,
    machine_config_operator::POOL,
    random::Random,
};

pub(crate) const LOAD_AWARE: &str = "load-aware-rebalancing";
pub(crate) const DENSITY: &str = "virt-higher-density";
pub(crate) const EXAMPLE: &str = "example-profile";

const DESCHEDULER: &str =
    "/apis/operator.openshift.io/v1/namespaces/openshift-kube-descheduler-operator/kubedeschedulers/cluster";
const HCO: &str = "/apis/hco.kubevirt.io/v1beta1/namespaces/openshift-cnv/hyperconvergeds/kubevirt-hyperconverged";
const MACHINE_CONFIGS: &str = "/apis/machineconfiguration.openshift.io/v1/machineconfigs";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const EXAMPLE_TARGET: &str = "/api/v1/namespaces/openshift-cnv/configmaps/example-config";

fn uri(profile: &str) -> String {
    format!("/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/{profile}")
}

/// Makes one edit.
pub(crate) fn edit(server: &Server, seed: u64, number: u64) {
    let mut random = Random::of(seed, "deed", number);
    let weights: [(u64, Edit); 17] = [
        (28, approvals::approve),
        (10, approvals::schedule),
        (4, approvals::reject),
        (12, approvals::restore),
        (8, approvals::stop_restoring),
        (1, approvals::delete_record),
        (12, withdraw),
        (5, ignore),
        (12, choose_options),
        (4, delete_config),
        (10, edit_descheduler),
        (8, edit_machine_config),
        (14, edit_hyper_converged),
        (5, define_or_remove),
        (5, pause_or_resume),
        (3, spoil),
        (5, edit_example),
    ];
    let mut left = random.below(weights.iter().map(|(weight, _)| weight).sum());
    for (weight, edit) in weights {
        if left < weight {
            return edit(server, &mut random);
        }
        left -= weight;
    }
}

type Edit = fn(&Server, &mut Random);

fn profile(random: &mut Random) -> &'static str {
    const SOME: [&str; 6] = [LOAD_AWARE, LOAD_AWARE, LOAD_AWARE, DENSITY, DENSITY, EXAMPLE];
    SOME[random.below(6) as usize]
}

/// Edits the spec of a configuration, or creates it.
pub(crate) fn configure(server: &Server, profile: &str, spec: Value) {
    let mut object = json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
        "metadata": {"name": profile}, "spec": {"profile": profile, "action": "DryRun"},
    });
    let uri = format!("{}?fieldManager=admin", uri(profile));
    if exists(server, &uri) {
        server.request_as("admin", Method::PATCH, &uri, MERGE, &json!({"spec": spec}));
        return;
    }
    // A merge patch of a new object leaves out what is null.
    merge_patch(&mut object["spec"], &spec);
    server.request_as("admin", Method::PATCH, &uri, APPLY, &object);
}

fn withdraw(server: &Server, random: &mut Random) {
    configure(server, profile(random), json!({"action": "DryRun"}));
}

fn ignore(server: &Server, random: &mut Random) {
    configure(server, profile(random), json!({"action": "Ignore"}));
}

fn choose_options(server: &Server, random: &mut Random) {
    let load_aware = [
        json!({"enablePSIMetrics": false}),
        json!({"enablePSIMetrics": true, "deschedulingIntervalSeconds": 120}),
        json!({"evictionLimitTotal": 7, "evictionLimitNode": 3}),
        json!({"mode": "Predictive"}),
    ];
    let density = [
        json!({"enableSwap": true}),
        json!({"enableSwap": false}),
        json!({"enableSwap": true, "memoryToRequestRatio": 200}),
        json!({"enableSwap": false, "ksmConfiguration": {"enabled": true}}),
    ];
    let profile = profile(random);
    let options = match (profile, random.below(5)) {
        (_, 0) | (EXAMPLE, _) => Value::Null,
        (LOAD_AWARE, _) => json!({"loadAware": random.pick(&load_aware)}),
        _ => json!({"virtHigherDensity": random.pick(&density)}),
    };
    // A merge patch alone would keep the former options.
    configure(server, profile, json!({"options": Value::Null}));
    configure(server, profile, json!({"options": options}));
}

fn delete_config(server: &Server, random: &mut Random) {
    server.request_as("admin", Method::DELETE, &uri(profile(random)), "", &Value::Null);
}

fn edit_descheduler(server: &Server, random: &mut Random) {
    let edited = format!("{DESCHEDULER}?fieldManager=kubectl-edit");
    let edit = |spec: Value| drop(server.request_as("admin", Method::PATCH, &edited, MERGE, &json!({"spec": spec})));
    match random.below(8) {
        0 | 1 => edit(json!({"deschedulingIntervalSeconds": *random.pick(&[60, 180, 300])})),
        2 => edit(json!({"mode": *random.pick(&["Automatic", "Predictive"])})),
        3 => edit(
            json!({"profiles": random.pick(&[json!(["AffinityAndTaints"]), json!(["KubeVirtRelieveAndMigrate"])])}),
        ),
        4 => edit(json!({"logLevel": *random.pick(&["Normal", "Debug"])})),
        5 => drop(server.request_as("admin", Method::DELETE, DESCHEDULER, "", &Value::Null)),
        6 => {
            let status = json!({"status": {"readyReplicas": random.below(9)}});
            server.request_as("desched", Method::PATCH, &format!("{DESCHEDULER}/status"), MERGE, &status);
        }
        _ => {
            let object = json!({
                "apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler",
                "metadata": {"name": "cluster", "namespace": "openshift-kube-descheduler-operator"},
                "spec": {"mode": "Predictive", "profiles": ["AffinityAndTaints"], "deschedulingIntervalSeconds": 3600},
            });
            server.request_as(
                "argocd",
                Method::PATCH,
                &format!("{DESCHEDULER}?fieldManager=argocd&force=true"),
                APPLY,
                &object,
            );
        }
    }
}

fn edit_machine_config(server: &Server, random: &mut Random) {
    let name = *random.pick(&["99-worker-psi-karg", "99-worker-psi-karg", "90-worker-kubelet-swap"]);
    let uri = format!("{MACHINE_CONFIGS}/{name}");
    let edited = format!("{uri}?fieldManager=kubectl-edit");
    match random.below(4) {
        0 => drop(server.request_as("admin", Method::DELETE, &uri, "", &Value::Null)),
        1 => {
            let arguments = random.pick(&[json!(["psi=0"]), json!(["psi=1", "quiet"]), json!([])]).clone();
            server.request_as("admin", Method::PATCH, &edited, MERGE, &json!({"spec": {"kernelArguments": arguments}}));
        }
        2 => {
            let labels = json!({"metadata": {"labels": {"team": *random.pick(&["a", "b"])}}});
            server.request_as("admin", Method::PATCH, &edited, MERGE, &labels);
        }
        _ => {
            let object = json!({
                "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
                "metadata": {"name": name, "labels": {"machineconfiguration.openshift.io/role": "worker"}},
                "spec": {"kernelArguments": ["nosmt"]},
            });
            server.request_as(
                "argocd",
                Method::PATCH,
                &format!("{uri}?fieldManager=argocd&force=true"),
                APPLY,
                &object,
            );
        }
    }
}

fn edit_hyper_converged(server: &Server, random: &mut Random) {
    let edited = format!("{HCO}?fieldManager=kubectl-edit");
    let edit = |spec: Value| drop(server.request_as("admin", Method::PATCH, &edited, MERGE, &json!({"spec": spec})));
    match random.below(8) {
        0 | 1 => {
            let total = *random.pick(&[Some(5), Some(20), None]);
            edit(json!({"liveMigrationConfig": {"parallelMigrationsPerCluster": total}}));
        }
        2 => edit(json!({"liveMigrationConfig": {"parallelOutboundMigrationsPerNode": *random.pick(&[2, 6])}})),
        3 => edit(json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": *random.pick(&[100, 120, 150])}})),
        4 => edit(json!({"ksmConfiguration": random.pick(&[Value::Null, json!({"nodeLabelSelector": {}})])})),
        5 => edit(json!({"evictionStrategy": *random.pick(&["LiveMigrate", "None"])})),
        6 => {
            let status = json!({"status": {"observedGeneration": random.below(9)}});
            server.request_as("hco", Method::PATCH, &format!("{HCO}/status"), MERGE, &status);
        }
        _ => {
            if exists(server, HCO) {
                server.request_as("admin", Method::DELETE, HCO, "", &Value::Null);
            } else {
                populate(server, "hyperconvergeds");
            }
        }
    }
}

fn edit_example(server: &Server, random: &mut Random) {
    let edited = format!("{EXAMPLE_TARGET}?fieldManager=kubectl-edit");
    match random.below(3) {
        0 => drop(server.request_as("admin", Method::DELETE, EXAMPLE_TARGET, "", &Value::Null)),
        1 => drop(server.request_as("admin", Method::PATCH, &edited, MERGE, &json!({"data": {"other": "x"}}))),
        _ => drop(server.request_as("admin", Method::PATCH, &edited, MERGE, &json!({"data": {"example-key": "y"}}))),
    }
}

/// Removes the definition of a component, or installs it again.
fn define_or_remove(server: &Server, random: &mut Random) {
    let plural = *random.pick(&["kubedeschedulers", "machineconfigs", "machineconfigpools", "hyperconvergeds"]);
    let resource = named(plural);
    if server.cluster().store.serves(resource) {
        let name = format!("{plural}.{}", resource.group);
        server.request_as("admin", Method::DELETE, &format!("{DEFINITIONS}/{name}"), "", &Value::Null);
    } else {
        install(server, plural);
    }
}

fn pause_or_resume(server: &Server, random: &mut Random) {
    let paused = random.permille(500);
    server.request_as(
        "admin",
        Method::PATCH,
        &format!("{POOL}?fieldManager=admin"),
        MERGE,
        &json!({"spec": {"paused": paused}}),
    );
}

/// Stores an object that its schema would refuse.
fn spoil(server: &Server, random: &mut Random) {
    let action = random.pick(&[json!(7), json!("Explode")]).clone();
    configure(server, EXAMPLE, json!({"action": action}));
}

/// Installs a definition and the sample objects of its kind.
fn install(server: &Server, plural: &str) {
    let definition = named(plural).definition.clone().unwrap();
    server.request_as("admin", Method::POST, &format!("{DEFINITIONS}?fieldManager=installer"), JSON, &definition);
    populate(server, plural);
}

/// Creates the sample objects of one kind, or of all kinds.
pub(crate) fn populate(server: &Server, plural: &str) {
    let objects = crate::samples::objects();
    for (uri, object) in objects.iter().filter(|(uri, _)| plural.is_empty() || uri.contains(&format!("/{plural}/"))) {
        let manager = if uri.contains("/status") { "controllers" } else { "installer" };
        server.request_as("install", Method::PATCH, &format!("{uri}?fieldManager={manager}&force=true"), APPLY, object);
    }
}

/// The store that every run begins with: all definitions and all sample objects.
pub(crate) fn initial_store() -> Store {
    static FOUNDED: OnceLock<Store> = OnceLock::new();
    let found = || {
        let server = Server::new(0, FaultPlan::none(), Store::default());
        for definition in resources().iter().filter_map(|resource| resource.definition.as_ref()) {
            let uri = format!("{DEFINITIONS}?fieldManager=installer");
            server.request_as("install", Method::POST, &uri, JSON, definition);
        }
        populate(&server, "");
        std::mem::take(&mut server.cluster().store)
    };
    FOUNDED.get_or_init(found).clone()
}

/// Resumes the worker pool: a paused pool keeps a plan from its end.
pub(crate) fn resume(server: &Server) {
    if exists(server, POOL) {
        server.request_as(
            "admin",
            Method::PATCH,
            &format!("{POOL}?fieldManager=admin"),
            MERGE,
            &json!({"spec": {"paused": false}}),
        );
    }
}

/// Installs again what is missing, with three seeds of four.
pub(crate) fn reinstall(server: &Server, seed: u64) {
    if Random::of(seed, "settle", 0).permille(250) {
        return;
    }
    for plural in ["kubedeschedulers", "machineconfigs", "machineconfigpools", "hyperconvergeds"] {
        let served = server.cluster().store.serves(named(plural));
        if !served {
            install(server, plural);
        }
    }
    let pool = server.cluster().store.get(&Key::new(named("machineconfigpools"), "", "worker")).is_some();
    if !pool {
        populate(server, "machineconfigpools");
    }
    if !exists(server, HCO) {
        populate(server, "hyperconvergeds");
    }
}
