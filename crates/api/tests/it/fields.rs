//! Fields that are not there: unknown ones, empty ones, and those that the server fills in.

use crate::{
    manifest::{CONFIG, MACHINE, Manifest, busy, config, density, example, guest, load_aware, machine, selector},
    table::{accept, check, reject, store, warn},
};

#[tokio::test]
async fn an_unknown_field_is_refused_by_strict_validation() {
    let unknown = |path: &str| format!(r#"strict decoding error: unknown field "{path}""#);
    check([
        reject(example("waitTimeOut: 30m"), unknown("spec.waitTimeOut")),
        reject(example("Action: Apply"), unknown("spec.Action")),
        reject(example("options: {example: {}}"), unknown("spec.options.example")),
        reject(load_aware("interval: 60"), unknown("spec.options.loadAware.interval")),
        reject(load_aware("enablePsiMetrics: true"), unknown("spec.options.loadAware.enablePsiMetrics")),
        reject(density("ksm: {}"), unknown("spec.options.virtHigherDensity.ksm")),
        reject(
            selector("matchFields: []"),
            unknown("spec.options.virtHigherDensity.ksmConfiguration.nodeLabelSelector.matchFields"),
        ),
        reject(
            selector("matchExpressions: [{key: a, operator: Exists, weight: 1}]"),
            unknown("spec.options.virtHigherDensity.ksmConfiguration.nodeLabelSelector.matchExpressions[0].weight"),
        ),
        reject(example("approval: {by: me}"), unknown("spec.approval.by")),
        reject(
            Manifest::new(CONFIG, "example-profile", "spec: {profile: example-profile}\nspecs: {}"),
            unknown("specs"),
        ),
        reject(example("").with_metadata("label: {a: b}"), unknown("metadata.label")),
        reject(
            example("one: 1, two: 2"),
            r#"strict decoding error: unknown field "spec.one", unknown field "spec.two""#,
        ),
        reject(machine("resources: {cpu: 2, memory: 4Gi}, migration: {}"), unknown("spec.migration")),
        reject(guest("cpu: 2, memory: 4Gi, gpu: 1"), unknown("spec.resources.gpu")),
        reject(guest("cpu: {cores: 2}, memory: 4Gi"), unknown("spec.resources.cpu.cores")),
        reject(busy("disk: '0.5'"), unknown("spec.utilization.disk")),
        reject(example("action: Apply, action: Ignore"), r#"key "action" already set in map"#),
    ])
    .await;
}

#[tokio::test]
async fn an_unknown_field_is_otherwise_dropped() {
    const SPEC: &str = "{profile: example-profile, action: DryRun, failurePolicy: Abort, bypassOptimisticLock: false}";
    check([
        warn(example("waitTimeOut: 30m"), r#"unknown field \"spec.waitTimeOut\""#),
        warn(busy("disk: '0.5'"), r#"unknown field \"spec.utilization.disk\""#),
        store(example("waitTimeOut: 30m"), "spec", SPEC).silently(),
        store(example("options: {example: {}}"), "spec.options", "{}").silently(),
        store(density("ksm: {}"), "spec.options.virtHigherDensity", "{enableSwap: true}").silently(),
        store(guest("cpu: 2, memory: 4Gi, gpu: 1"), "spec.resources", "{cpu: 2, memory: 4Gi}").silently(),
        store(busy("disk: '0.5'"), "spec.utilization", "{cpu: '0.5', memory: '0.8'}").silently(),
        // Dropping comes before the rules: this one is left without options.
        accept(example("options: {loadaware: {mode: Manual}}")).silently(),
    ])
    .await;
}

#[tokio::test]
async fn null_is_the_same_as_absent() {
    check([
        store(example("action: null"), "spec.action", "DryRun"),
        store(example("failurePolicy: null"), "spec.failurePolicy", "Abort"),
        store(example("bypassOptimisticLock: null"), "spec.bypassOptimisticLock", "false"),
        store(example("waitTimeout: null"), "spec.waitTimeout", "null"),
        store(example("approval: null"), "spec.approval", "null"),
        store(example("approval: {planDigest: null, reason: null}"), "spec.approval", "{}"),
        store(example("options: null"), "spec.options", "null"),
        store(example("options: {loadAware: null, virtHigherDensity: null}"), "spec.options", "{}"),
        store(load_aware("mode: null"), "spec.options.loadAware.mode", "Automatic"),
        store(load_aware("evictionLimitTotal: null"), "spec.options.loadAware.evictionLimitTotal", "null"),
        accept(selector("matchLabels: null, matchExpressions: null")),
        accept(selector("matchExpressions: [{key: a, operator: Exists, values: null}]")),
        reject(config("example-profile", "profile: null"), "spec.profile: Required value"),
        reject(Manifest::new(CONFIG, "example-profile", "spec: null"), "spec: Required value"),
        reject(machine("resources: null"), "spec.resources: Required value"),
    ])
    .await;
}

#[tokio::test]
async fn the_server_fills_in_the_defaults() {
    const LOAD_AWARE: &str = "spec.options.loadAware";
    check([
        store(
            example(""),
            "spec",
            "{profile: example-profile, action: DryRun, failurePolicy: Abort, bypassOptimisticLock: false}",
        ),
        store(
            load_aware(""),
            LOAD_AWARE,
            "{deschedulingIntervalSeconds: 60, mode: Automatic, enablePSIMetrics: true, devDeviationThresholds: AsymmetricLow}",
        ),
        store(
            load_aware("mode: Predictive, evictionLimitNode: 3"),
            LOAD_AWARE,
            "{deschedulingIntervalSeconds: 60, mode: Predictive, enablePSIMetrics: true, devDeviationThresholds: AsymmetricLow, evictionLimitNode: 3}",
        ),
        store(density(""), "spec.options.virtHigherDensity", "{enableSwap: true}"),
    ])
    .await;
}

#[tokio::test]
async fn a_status_cannot_be_created_with_the_object() {
    let machine = "spec: {resources: {cpu: 2, memory: 4Gi}}\nstatus: {phase: Running, nodeName: node-1}";
    check([store(Manifest::new(MACHINE, "virt-advisor-api-test", machine), "status", "null")]).await;
}
