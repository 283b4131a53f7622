//! Everybody else: administrators who edit configurations, targets and inputs, and installers who come and go. What somebody
//! does follows from the seed, the number of the deed and what is there at that moment.

use std::sync::OnceLock;

use http::Method;
use serde_json::{Value, json};

use crate::{
    api::{
        kinds::{named, resources},
        store::{Key, Store},
    },
    dice::Dice,
    door::{APPLY, JSON, MERGE, exists},
    fate::Climate,
    mco::POOL,
    world::Server,
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

/// Does something.
pub(crate) fn act(server: &Server, seed: u64, number: u64) {
    let mut dice = Dice::of(seed, "deed", number);
    let weights: [(u64, Deed); 12] = [
        (30, approve),
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
    let mut left = dice.below(weights.iter().map(|(weight, _)| weight).sum());
    for (weight, deed) in weights {
        if left < weight {
            return deed(server, &mut dice);
        }
        left -= weight;
    }
}

type Deed = fn(&Server, &mut Dice);

fn profile(dice: &mut Dice) -> &'static str {
    const SOME: [&str; 6] = [LOAD_AWARE, LOAD_AWARE, LOAD_AWARE, DENSITY, DENSITY, EXAMPLE];
    SOME[dice.below(6) as usize]
}

/// Edits the spec of a configuration, or creates it.
pub(crate) fn configure(server: &Server, profile: &str, spec: Value) {
    let mut object = json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
        "metadata": {"name": profile}, "spec": {"profile": profile, "action": "DryRun"},
    });
    let uri = format!("{}?fieldManager=admin", uri(profile));
    if exists(server, &uri) {
        server.act("admin", Method::PATCH, &uri, MERGE, &json!({"spec": spec}));
        return;
    }
    if let Value::Object(spec) = spec {
        object["spec"].as_object_mut().unwrap().extend(spec.into_iter().filter(|(_, value)| !value.is_null()));
    }
    server.act("admin", Method::PATCH, &uri, APPLY, &object);
}

fn approve(server: &Server, dice: &mut Dice) {
    let profile = profile(dice);
    let current =
        server.world().config(profile).and_then(|config| config["status"]["planDigest"].as_str().map(str::to_owned));
    let digest = match dice.below(5) {
        0 => json!({"planDigest": "0".repeat(64)}),
        1 | 2 => current.map_or(Value::Null, |digest| json!({"planDigest": digest})),
        _ => Value::Null,
    };
    let policy = *dice.pick(&["Abort", "Abort", "Continue"]);
    let wait = *dice.pick(&[None, None, None, Some("2m")]);
    let bypass = dice.permille(250);
    let spec = json!({
        "action": "Apply", "approval": digest, "bypassOptimisticLock": bypass, "failurePolicy": policy, "waitTimeout": wait,
    });
    configure(server, profile, spec);
}

fn withdraw(server: &Server, dice: &mut Dice) {
    configure(server, profile(dice), json!({"action": "DryRun"}));
}

fn ignore(server: &Server, dice: &mut Dice) {
    configure(server, profile(dice), json!({"action": "Ignore"}));
}

fn choose_options(server: &Server, dice: &mut Dice) {
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
    let profile = profile(dice);
    let options = match (profile, dice.below(5)) {
        (_, 0) | (EXAMPLE, _) => Value::Null,
        (LOAD_AWARE, _) => json!({"loadAware": dice.pick(&load_aware)}),
        _ => json!({"virtHigherDensity": dice.pick(&density)}),
    };
    // A merge patch would keep the options of before.
    configure(server, profile, json!({"options": Value::Null}));
    configure(server, profile, json!({"options": options}));
}

fn delete_config(server: &Server, dice: &mut Dice) {
    server.act("admin", Method::DELETE, &uri(profile(dice)), "", &Value::Null);
}

fn edit_descheduler(server: &Server, dice: &mut Dice) {
    let edited = format!("{DESCHEDULER}?fieldManager=kubectl-edit");
    let edit = |spec: Value| drop(server.act("admin", Method::PATCH, &edited, MERGE, &json!({"spec": spec})));
    match dice.below(8) {
        0 | 1 => edit(json!({"deschedulingIntervalSeconds": *dice.pick(&[60, 180, 300])})),
        2 => edit(json!({"mode": *dice.pick(&["Automatic", "Predictive"])})),
        3 => {
            edit(json!({"profiles": dice.pick(&[json!(["AffinityAndTaints"]), json!(["KubeVirtRelieveAndMigrate"])])}))
        }
        4 => edit(json!({"logLevel": *dice.pick(&["Normal", "Debug"])})),
        5 => drop(server.act("admin", Method::DELETE, DESCHEDULER, "", &Value::Null)),
        6 => {
            let status = json!({"status": {"readyReplicas": dice.below(9)}});
            server.act("desched", Method::PATCH, &format!("{DESCHEDULER}/status"), MERGE, &status);
        }
        _ => {
            let object = json!({
                "apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler",
                "metadata": {"name": "cluster", "namespace": "openshift-kube-descheduler-operator"},
                "spec": {"mode": "Predictive", "profiles": ["AffinityAndTaints"], "deschedulingIntervalSeconds": 3600},
            });
            server.act(
                "argocd",
                Method::PATCH,
                &format!("{DESCHEDULER}?fieldManager=argocd&force=true"),
                APPLY,
                &object,
            );
        }
    }
}

fn edit_machine_config(server: &Server, dice: &mut Dice) {
    let name = *dice.pick(&["99-worker-psi-karg", "99-worker-psi-karg", "90-worker-kubelet-swap"]);
    let uri = format!("{MACHINE_CONFIGS}/{name}");
    let edited = format!("{uri}?fieldManager=kubectl-edit");
    match dice.below(4) {
        0 => drop(server.act("admin", Method::DELETE, &uri, "", &Value::Null)),
        1 => {
            let arguments = dice.pick(&[json!(["psi=0"]), json!(["psi=1", "quiet"]), json!([])]).clone();
            server.act("admin", Method::PATCH, &edited, MERGE, &json!({"spec": {"kernelArguments": arguments}}));
        }
        2 => {
            let labels = json!({"metadata": {"labels": {"team": *dice.pick(&["a", "b"])}}});
            server.act("admin", Method::PATCH, &edited, MERGE, &labels);
        }
        _ => {
            let object = json!({
                "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
                "metadata": {"name": name, "labels": {"machineconfiguration.openshift.io/role": "worker"}},
                "spec": {"kernelArguments": ["nosmt"]},
            });
            server.act("argocd", Method::PATCH, &format!("{uri}?fieldManager=argocd&force=true"), APPLY, &object);
        }
    }
}

fn edit_hyper_converged(server: &Server, dice: &mut Dice) {
    let edited = format!("{HCO}?fieldManager=kubectl-edit");
    let edit = |spec: Value| drop(server.act("admin", Method::PATCH, &edited, MERGE, &json!({"spec": spec})));
    match dice.below(8) {
        0 | 1 => {
            let total = *dice.pick(&[Some(5), Some(20), None]);
            edit(json!({"liveMigrationConfig": {"parallelMigrationsPerCluster": total}}));
        }
        2 => edit(json!({"liveMigrationConfig": {"parallelOutboundMigrationsPerNode": *dice.pick(&[2, 6])}})),
        3 => edit(json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": *dice.pick(&[100, 120, 150])}})),
        4 => edit(json!({"ksmConfiguration": dice.pick(&[Value::Null, json!({"nodeLabelSelector": {}})])})),
        5 => edit(json!({"evictionStrategy": *dice.pick(&["LiveMigrate", "None"])})),
        6 => {
            let status = json!({"status": {"observedGeneration": dice.below(9)}});
            server.act("hco", Method::PATCH, &format!("{HCO}/status"), MERGE, &status);
        }
        _ => {
            if exists(server, HCO) {
                server.act("admin", Method::DELETE, HCO, "", &Value::Null);
            } else {
                populate(server, "hyperconvergeds");
            }
        }
    }
}

fn edit_example(server: &Server, dice: &mut Dice) {
    let edited = format!("{EXAMPLE_TARGET}?fieldManager=kubectl-edit");
    match dice.below(3) {
        0 => drop(server.act("admin", Method::DELETE, EXAMPLE_TARGET, "", &Value::Null)),
        1 => drop(server.act("admin", Method::PATCH, &edited, MERGE, &json!({"data": {"other": "x"}}))),
        _ => drop(server.act("admin", Method::PATCH, &edited, MERGE, &json!({"data": {"example-key": "y"}}))),
    }
}

/// A component is uninstalled, or installed again.
fn define_or_remove(server: &Server, dice: &mut Dice) {
    let plural = *dice.pick(&["kubedeschedulers", "machineconfigs", "machineconfigpools", "hyperconvergeds"]);
    let resource = named(plural);
    if server.world().store.serves(resource) {
        let name = format!("{plural}.{}", resource.group);
        server.act("admin", Method::DELETE, &format!("{DEFINITIONS}/{name}"), "", &Value::Null);
    } else {
        install(server, plural);
    }
}

fn pause_or_resume(server: &Server, dice: &mut Dice) {
    let paused = dice.permille(500);
    server.act(
        "admin",
        Method::PATCH,
        &format!("{POOL}?fieldManager=admin"),
        MERGE,
        &json!({"spec": {"paused": paused}}),
    );
}

/// An object is stored that no schema would let pass.
fn spoil(server: &Server, dice: &mut Dice) {
    let action = dice.pick(&[json!(7), json!("Explode")]).clone();
    configure(server, EXAMPLE, json!({"action": action}));
}

/// Brings a definition back, and the objects that its component has.
fn install(server: &Server, plural: &str) {
    let definition = named(plural).definition.clone().unwrap();
    server.act("admin", Method::POST, &format!("{DEFINITIONS}?fieldManager=installer"), JSON, &definition);
    populate(server, plural);
}

/// The objects of a cluster at rest, of one kind or of all.
pub(crate) fn populate(server: &Server, plural: &str) {
    let objects = crate::samples::objects();
    for (uri, object) in objects.iter().filter(|(uri, _)| plural.is_empty() || uri.contains(&format!("/{plural}/"))) {
        let manager = if uri.contains("/status") { "controllers" } else { "installer" };
        server.act("install", Method::PATCH, &format!("{uri}?fieldManager={manager}&force=true"), APPLY, object);
    }
}

/// A cluster at rest. All worlds begin with the same one.
pub(crate) fn founded() -> Store {
    static FOUNDED: OnceLock<Store> = OnceLock::new();
    let found = || {
        let server = Server::new(0, Climate::fair(), Store::default());
        for definition in resources().iter().filter_map(|resource| resource.definition.as_ref()) {
            let uri = format!("{DEFINITIONS}?fieldManager=installer");
            server.act("install", Method::POST, &uri, JSON, definition);
        }
        populate(&server, "");
        std::mem::take(&mut server.world().store)
    };
    FOUNDED.get_or_init(found).clone()
}

/// What keeps plans from ending is set right: pools go on.
pub(crate) fn resume(server: &Server) {
    if exists(server, POOL) {
        server.act(
            "admin",
            Method::PATCH,
            &format!("{POOL}?fieldManager=admin"),
            MERGE,
            &json!({"spec": {"paused": false}}),
        );
    }
}

/// Mostly everything is installed again.
pub(crate) fn reinstall(server: &Server, seed: u64) {
    if Dice::of(seed, "settle", 0).permille(250) {
        return;
    }
    for plural in ["kubedeschedulers", "machineconfigs", "machineconfigpools", "hyperconvergeds"] {
        let served = server.world().store.serves(named(plural));
        if !served {
            install(server, plural);
        }
    }
    let pool = server.world().store.get(&Key::new(named("machineconfigpools"), "", "worker")).is_some();
    if !pool {
        populate(server, "machineconfigpools");
    }
    if !exists(server, HCO) {
        populate(server, "hyperconvergeds");
    }
}
