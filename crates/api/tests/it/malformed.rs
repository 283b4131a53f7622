//! Objects that were stored before the definitions had validations: each malformed object concerns only itself.

use std::{collections::BTreeMap, fmt::Debug, pin::pin, time::Duration};

use devcluster::{Cluster, poll};
use futures::{Stream, StreamExt};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSONSchemaProps};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    core::DeserializeGuard,
    runtime::watcher::{self, Event, watcher},
};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::OnceCell;
use virt_advisor_api::{InvalidValue, VirtPlatformConfig, VirtualMachine, crd, virt_platform_config::Action};

use crate::{
    manifest::{CONFIG, Manifest, change_by_status, config, example, guest, machine},
    server::Server,
    table::{accept, check_on, reject},
};

const TIMEOUT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(50);

/// Objects that the current definitions refuse, and two of each kind that they accept.
fn old_objects() -> Vec<Manifest> {
    let named = |name: &str, manifest: Manifest| Manifest { name: name.to_owned(), ..manifest };
    vec![
        config("virt-higher-density", "profile: virt-higher-density, action: Apply"),
        config("load-aware-rebalancing", "profile: load-aware-rebalancing, waitTimeout: abc"),
        config("example-profile", "profile: example-profile, waitTimeout: 30"),
        config("memory-magic", "profile: memory-magic"),
        config("old-action", "profile: example-profile, action: Now"),
        config("old-number", "profile: old-number, waitTimeout: 30"),
        config("old-options", "profile: example-profile, options: [swap]"),
        config("old-empty", ""),
        Manifest { body: String::new(), ..config("old-nothing", "") },
        named("good", guest("cpu: 2, memory: 4Gi")),
        named("wrong-value", guest("cpu: lots, memory: 4Gi")),
        named("wrong-number", guest("cpu: 1.5, memory: 4Gi")),
        named("wrong-object", guest("cpu: {cores: 2}, memory: 4Gi")),
        named("wrong-shape", machine("resources: [cpu]")),
        named("no-memory", guest("cpu: 2")),
    ]
}

/// A definition without any validation.
fn loosened(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        let anything = JSONSchemaProps {
            type_: Some("object".to_owned()),
            x_kubernetes_preserve_unknown_fields: Some(true),
            ..JSONSchemaProps::default()
        };
        version.schema.as_mut().unwrap().open_api_v3_schema = Some(anything);
    }
    crd
}

/// A cluster in which the objects were stored before the current definitions were installed.
async fn upgraded() -> Client {
    static CLUSTER: OnceCell<Cluster> = OnceCell::const_new();
    let cluster = CLUSTER.get_or_init(set_up).await;
    cluster.access().client().await.unwrap()
}

async fn set_up() -> Cluster {
    let cluster = Cluster::builder().start().await.unwrap_or_else(|error| panic!("{error}"));
    let access = cluster.access();
    let loose: Vec<_> = crd::crds().into_iter().map(loosened).collect();
    access.install_crds(&loose).await.unwrap();
    let server = Server(access.client().await.unwrap());
    for object in old_objects() {
        let answer = server.create(&object).await;
        assert!(answer.is_success(), "{}: {}", object.name, answer.message());
    }
    access.install_crds(&crd::crds()).await.unwrap();
    // An updated definition takes effect some time after it was stored, without any signal.
    for malformed in [example("action: Now"), guest("cpu: lots, memory: 4Gi")] {
        let fresh = Manifest { name: "new".to_owned(), ..malformed };
        let refused = async || if server.dry_run(&fresh, "Strict").await.is_success() { Err(()) } else { Ok(()) };
        poll(POLL, TIMEOUT, refused).await.expect("the new definition comes into effect");
    }
    cluster
}

/// Why each object cannot be read, if so.
fn readings<K: Resource>(objects: &[DeserializeGuard<K>]) -> BTreeMap<String, Option<String>> {
    let error = |object: &DeserializeGuard<K>| object.0.as_ref().err().map(|invalid| invalid.error.clone());
    objects.iter().map(|object| (object.name_any(), error(object))).collect()
}

/// Puts a label on the object. The answer is read as metadata, because the object may be malformed.
async fn label<K>(api: &Api<K>, name: &str)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let patch = json!({ "metadata": { "labels": { "seen": "true" } } });
    api.patch_metadata(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

type Guarded<K> = Event<DeserializeGuard<K>>;

async fn next<K>(watch: &mut (impl Stream<Item = watcher::Result<Guarded<K>>> + Unpin)) -> Guarded<K> {
    let event = tokio::time::timeout(TIMEOUT, watch.next()).await;
    event.expect("the watch shows something").expect("the watch goes on").expect("the watch reads everything")
}

/// The first events of a new watch: all existing objects.
async fn first<K: Debug>(
    watch: &mut (impl Stream<Item = watcher::Result<Guarded<K>>> + Unpin),
) -> Vec<DeserializeGuard<K>> {
    let mut objects = Vec::new();
    loop {
        match next(watch).await {
            Event::Init => {}
            Event::InitApply(object) => objects.push(object),
            Event::InitDone => return objects,
            other => panic!("unexpected at first: {other:?}"),
        }
    }
}

/// Which object was written, and why it cannot be read, if so.
async fn written<K: Resource + Debug>(
    watch: &mut (impl Stream<Item = watcher::Result<Guarded<K>>> + Unpin),
) -> (String, Option<String>) {
    match next(watch).await {
        Event::Apply(object) => (object.name_any(), object.0.err().map(|invalid| invalid.error)),
        other => panic!("expected a write, got {other:?}"),
    }
}

async fn deleted<K: Resource + Debug>(watch: &mut (impl Stream<Item = watcher::Result<Guarded<K>>> + Unpin)) -> String {
    match next(watch).await {
        Event::Delete(object) => object.name_any(),
        other => panic!("expected a deletion, got {other:?}"),
    }
}

fn expected(readings: &[(&str, Option<&str>)]) -> BTreeMap<String, Option<String>> {
    readings.iter().map(|(name, error)| ((*name).to_owned(), error.map(str::to_owned))).collect()
}

/// W23 (one bad object stops all): an object that cannot be read stops nobody.
#[tokio::test]
async fn malformed_configs_do_not_hide_the_good_ones() {
    let client = upgraded().await;
    let guarded: Api<DeserializeGuard<VirtPlatformConfig>> = Api::all(client.clone());
    let plain: Api<VirtPlatformConfig> = Api::all(client.clone());
    let everything = expected(&[
        ("virt-higher-density", None),
        ("load-aware-rebalancing", None),
        ("example-profile", Some("Invalid type integer `30`. Expected a string")),
        (
            "memory-magic",
            Some(
                "Unknown variant memory-magic. Expected one of load-aware-rebalancing, virt-higher-density, example-profile",
            ),
        ),
        ("old-action", Some("Unknown variant Now. Expected one of DryRun, Apply, Ignore")),
        (
            "old-number",
            Some(
                "Unknown variant old-number. Expected one of load-aware-rebalancing, virt-higher-density, example-profile",
            ),
        ),
        ("old-options", Some("Invalid type string \"swap\". Expected struct LoadAwareOptions")),
        ("old-empty", Some("Missing field profile")),
        ("old-nothing", Some("Missing field spec")),
    ]);

    // Therefore nobody may list the kind without the guard.
    let error = plain.list(&ListParams::default()).await.unwrap_err().to_string();
    assert!(error.contains("Error deserializing response: invalid type: integer `30`, expected a string"), "{error}");
    assert_eq!(readings(&guarded.list(&ListParams::default()).await.unwrap().items), everything);

    let good = plain.get("virt-higher-density").await.unwrap();
    assert_eq!(good.spec.action, Action::Apply);
    let readable = plain.get("load-aware-rebalancing").await.unwrap();
    let duration = readable.spec.wait_timeout.unwrap().duration();
    assert_eq!(duration, Err(InvalidValue::Duration("abc".to_owned())));

    let mut watch = pin!(watcher(guarded, watcher::Config::default()));
    assert_eq!(readings(&first(&mut watch).await), everything);
    label(&plain, "virt-higher-density").await;
    assert_eq!(written(&mut watch).await, ("virt-higher-density".to_owned(), None));
    plain.delete("old-action", &DeleteParams::default()).await.unwrap();
    assert_eq!(deleted(&mut watch).await, "old-action");
    let repaired = json!({ "spec": { "waitTimeout": "30m" } });
    plain.patch("example-profile", &PatchParams::default(), &Patch::Merge(repaired)).await.unwrap();
    assert_eq!(written(&mut watch).await, ("example-profile".to_owned(), None));
}

/// What an operator can do with such an object: in some cases it can write a status.
#[tokio::test]
async fn a_status_can_be_written_where_the_value_is_wrong_but_not_where_the_type_is() {
    let failed = |name| change_by_status(CONFIG, name, "status: {phase: Failed}");
    let cases = [
        accept(failed("load-aware-rebalancing")),
        accept(failed("memory-magic")),
        reject(
            failed("old-number"),
            r#"spec.waitTimeout: Invalid value: "string": invalid data, expected string, got int64 evaluating rule: must be a positive duration such as 30m, 2h or 1h30m, of at most 99999h"#,
        ),
        reject(failed("old-empty"), "no such key: profile evaluating rule: To ensure a singleton pattern"),
        reject(failed("old-options"), "the VirtPlatformConfig name must exactly match the spec.profile."),
    ];
    check_on(&Server(upgraded().await), cases).await;
}

#[tokio::test]
async fn malformed_machines_do_not_hide_the_good_ones() {
    let client = upgraded().await;
    let guarded: Api<DeserializeGuard<VirtualMachine>> = Api::default_namespaced(client.clone());
    let plain: Api<VirtualMachine> = Api::default_namespaced(client.clone());
    let everything = expected(&[
        ("good", None),
        ("wrong-value", None),
        ("wrong-number", Some("must be an integer or a text")),
        ("wrong-object", Some("must be an integer or a text")),
        ("wrong-shape", Some("Invalid length 1. Expected struct Resources with 2 elements")),
        ("no-memory", Some("Missing field memory")),
    ]);

    let error = plain.list(&ListParams::default()).await.unwrap_err().to_string();
    assert!(error.contains("Error deserializing response: missing field `memory`"), "{error}");
    assert_eq!(readings(&guarded.list(&ListParams::default()).await.unwrap().items), everything);

    assert_eq!(plain.get("good").await.unwrap().spec.resources.cpu.cores(), Ok(2.0));
    let readable = plain.get("wrong-value").await.unwrap();
    assert_eq!(readable.spec.resources.cpu.cores(), Err(InvalidValue::Cpu("lots".to_owned())));
    assert_eq!(readable.spec.resources.memory.bytes(), Ok(4 << 30));

    let mut watch = pin!(watcher(guarded, watcher::Config::default()));
    assert_eq!(readings(&first(&mut watch).await), everything);
    label(&plain, "no-memory").await;
    assert_eq!(written(&mut watch).await, ("no-memory".to_owned(), Some("Missing field memory".to_owned())));
    plain.delete("wrong-shape", &DeleteParams::default()).await.unwrap();
    assert_eq!(deleted(&mut watch).await, "wrong-shape");
    let repaired = json!({ "spec": { "resources": { "cpu": 2 } } });
    plain.patch("wrong-object", &PatchParams::default(), &Patch::Merge(repaired)).await.unwrap();
    assert_eq!(written(&mut watch).await, ("wrong-object".to_owned(), None));
}
