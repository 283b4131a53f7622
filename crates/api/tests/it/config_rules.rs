//! The rules across the fields of a VirtPlatformConfig, both ways, and the texts that only a rule can check.

use virt_advisor_api::virt_platform_config::WaitTimeout;

use crate::{
    manifest::{CONFIG, Manifest, config, density, example, profile, selector},
    table::{accept, check, check_types, each, invalid, reject, store},
};

const OPTIONS: &str = "spec.options.virtHigherDensity";

#[tokio::test]
async fn the_name_is_the_profile() {
    const MESSAGE: &str =
        "To ensure a singleton pattern, the VirtPlatformConfig name must exactly match the spec.profile.";
    check([
        accept(config("virt-higher-density", "profile: virt-higher-density")),
        reject(config("my-config", "profile: virt-higher-density"), format!("spec.profile: Invalid value: {MESSAGE}")),
        reject(config("load-aware-rebalancing", "profile: virt-higher-density"), MESSAGE),
        reject(config("virt-higher-density-2", "profile: virt-higher-density"), MESSAGE),
        reject(config("virt-higher-density", ""), "spec.profile: Required value"),
        reject(Manifest::new(CONFIG, "virt-higher-density", "spec: {}"), "spec.profile: Required value"),
        reject(Manifest::new(CONFIG, "virt-higher-density", ""), "spec: Required value"),
    ])
    .await;
}

#[tokio::test]
async fn options_are_those_of_the_profile() {
    const S1: &str = "spec.options.virtHigherDensity: Forbidden: When profile is 'load-aware-rebalancing', only options.loadAware may be set";
    const S2: &str = "spec.options.loadAware: Forbidden: When profile is 'virt-higher-density', only options.virtHigherDensity may be set";
    const S3: &str =
        "spec.options.loadAware: Forbidden: options.loadAware can only be used with profile 'load-aware-rebalancing'";
    const S4: &str = "spec.options.virtHigherDensity: Forbidden: options.virtHigherDensity can only be used with profile 'virt-higher-density'";
    let (aware, dense) = ("load-aware-rebalancing", "virt-higher-density");
    check([
        accept(profile(aware, "options: {loadAware: {}}")),
        accept(profile(dense, "options: {virtHigherDensity: {}}")),
        reject(profile(aware, "options: {virtHigherDensity: {}}"), S1),
        reject(profile(aware, "options: {virtHigherDensity: {}}"), S4),
        reject(profile(aware, "options: {loadAware: {}, virtHigherDensity: {}}"), S1),
        reject(profile(dense, "options: {loadAware: {}}"), S2),
        reject(profile(dense, "options: {loadAware: {}}"), S3),
        reject(profile(dense, "options: {virtHigherDensity: {}, loadAware: {}}"), S2),
        reject(example("options: {loadAware: {}}"), S3),
        reject(example("options: {virtHigherDensity: {}}"), S4),
        // Empty options are no options, and stay as they were written.
        store(profile(aware, "options: {}"), "spec.options", "{}"),
        store(profile(dense, "options: {}"), "spec.options", "{}"),
        store(example("options: {}"), "spec.options", "{}"),
    ])
    .await;
}

/// W13 (enableSwap: false refused), D3 (swap removal), D4 (ratio needs swap): `enableSwap: false` alone is valid.
#[tokio::test]
async fn a_high_ratio_needs_swap_and_its_absence_needs_nothing() {
    const MESSAGE: &str = "spec.options.virtHigherDensity.memoryToRequestRatio: Invalid value: memoryToRequestRatio > 120 requires enableSwap=true";
    check([
        accept(density("enableSwap: false, memoryToRequestRatio: 100")),
        accept(density("enableSwap: false, memoryToRequestRatio: 120")),
        reject(density("enableSwap: false, memoryToRequestRatio: 121"), MESSAGE),
        reject(density("enableSwap: false, memoryToRequestRatio: 300"), MESSAGE),
        accept(density("enableSwap: true, memoryToRequestRatio: 121")),
        // Swap is on by default.
        accept(density("memoryToRequestRatio: 121")),
        accept(density("enableSwap: null, memoryToRequestRatio: 121")),
        // No ratio is filled in, for it would depend on swap.
        store(density("enableSwap: false"), OPTIONS, "{enableSwap: false}"),
        store(density("enableSwap: true"), OPTIONS, "{enableSwap: true}"),
        store(density("enableSwap: false, memoryToRequestRatio: null"), OPTIONS, "{enableSwap: false}"),
    ])
    .await;
}

#[tokio::test]
async fn ksm_is_asked_for_in_every_form() {
    let ksm = |fields: &str| density(&format!("ksmConfiguration: {fields}"));
    check([
        store(density(""), OPTIONS, "{enableSwap: true}"),
        store(ksm("null"), OPTIONS, "{enableSwap: true}"),
        store(ksm("{}"), OPTIONS, "{enableSwap: true, ksmConfiguration: {enabled: true}}"),
        store(ksm("{enabled: true}"), OPTIONS, "{enableSwap: true, ksmConfiguration: {enabled: true}}"),
        store(ksm("{enabled: false}"), OPTIONS, "{enableSwap: true, ksmConfiguration: {enabled: false}}"),
        store(
            ksm("{nodeLabelSelector: {}}"),
            OPTIONS,
            "{enableSwap: true, ksmConfiguration: {enabled: true, nodeLabelSelector: {}}}",
        ),
        store(
            ksm("{enabled: false, nodeLabelSelector: {matchLabels: {ksm: 'true'}}}"),
            OPTIONS,
            "{enableSwap: true, ksmConfiguration: {enabled: false, nodeLabelSelector: {matchLabels: {ksm: 'true'}}}}",
        ),
    ])
    .await;
}

/// W23 (one bad object stops all): anything else never gets in.
#[tokio::test]
async fn a_wait_timeout_is_a_positive_duration() {
    const RULE: &str = "must be a positive duration such as 30m, 2h or 1h30m, of at most 99999h";
    const GOOD: &str = "30m | 2h | 24h | 1h30m | 1.5h | 90s | 100ms | 7us | 7µs | 7μs | 1ns | 0h1m | 99999h | 9999999m | 999999999s | 1h15m30.918273645s";
    const BAD: &str = "'' | '0' | 0s | 0h0m | 0.0s | '30' | m | .5h | 1.h | -30m | +30m | 30 m | 1d | 1w | 30min | 1e3s | abc | forever | 1h-30m | 100000h | 10000000m | 1000000000s | 1.0000000001s | PT30M | ' 30m' | '30m ' | ９h";
    check_types(GOOD, BAD, |timeout: &WaitTimeout| timeout.duration().is_ok());
    let wait = |text: &str| example(&format!("waitTimeout: {text}"));
    let good = each(GOOD, |text| accept(wait(text)));
    let bad = each(BAD, |text| reject(wait(text), invalid("spec.waitTimeout", text, RULE)));
    let null = store(wait("null"), "spec.waitTimeout", "null");
    check(good.into_iter().chain(bad).chain([null])).await;
}

#[tokio::test]
async fn an_approval_names_a_digest() {
    const RULE: &str = "must be a plan digest as in status.planDigest: 64 digits from 0-9 and a-f";
    let digest = |text: &str| example(&format!("approval: {{planDigest: '{text}'}}"));
    let refused = |text: &str| reject(digest(text), invalid("spec.approval.planDigest", &format!("'{text}'"), RULE));
    check([
        accept(digest(&"0123456789abcdef".repeat(4))),
        accept(example(&format!("approval: {{planDigest: {}, reason: CHG-17}}", "a".repeat(64)))),
        accept(example("approval: {}")),
        accept(example("approval: {reason: 'the whole team read it'}")),
        accept(example("approval: {reason: ''}")),
        refused(""),
        refused(&"a".repeat(63)),
        refused(&"a".repeat(65)),
        refused(&"A".repeat(64)),
        refused(&"g".repeat(64)),
        refused(&format!("sha256:{}", "a".repeat(64))),
    ])
    .await;
}

#[tokio::test]
async fn a_selector_can_match_a_node() {
    const SELECTOR: &str = "spec.options.virtHigherDensity.ksmConfiguration.nodeLabelSelector";
    let key_message = format!(
        "{SELECTOR}.matchLabels: Invalid value: keys must be label keys such as ksm-enabled or kubernetes.io/arch"
    );
    let value_message =
        format!("{SELECTOR}.matchLabels: Invalid value: values must be label values such as worker or zone-1");
    let expression = |fields: &str| selector(&format!("matchExpressions: [{{{fields}}}]"));
    let at = |field: &str, message: &str| format!("{SELECTOR}.matchExpressions[0]{field}: {message}");
    let needs_values =
        at(".values", r#"Required value: operator In or NotIn needs at least one value, such as values: ["true"]"#);
    let takes_none = at(".values", "Forbidden: operator Exists or DoesNotExist takes no values");
    let bad_key = |key: &str| {
        at(".key", &format!("Invalid value: \"{key}\": must be a label key such as ksm-enabled or kubernetes.io/arch"))
    };
    let bad_value = at(".values", "Invalid value: must be label values such as worker or zone-1");
    check([
        accept(selector("matchLabels: {}")),
        accept(selector("matchExpressions: []")),
        accept(selector("matchLabels: {ksm-enabled: 'true', kubernetes.io/arch: arm64, empty: ''}")),
        accept(selector("matchLabels: {a: b}, matchExpressions: [{key: c, operator: Exists}]")),
        reject(selector("matchLabels: {'not a key': x}"), &key_message),
        reject(selector("matchLabels: {'-a': x}"), &key_message),
        reject(selector("matchLabels: {a/b/c: x}"), &key_message),
        reject(selector("matchLabels: {Example.COM/a: x}"), &key_message),
        reject(selector("matchLabels: {'': x}"), &key_message),
        reject(selector("matchLabels: {a: 'no spaces'}"), &value_message),
        reject(selector("matchLabels: {a: '-x'}"), &value_message),
        reject(selector("matchLabels: {a: x/y}"), &value_message),
        accept(expression("key: zone, operator: In, values: [a, b, '']")),
        accept(expression("key: topology.kubernetes.io/zone, operator: NotIn, values: [zone-1]")),
        accept(expression("key: gpu, operator: Exists, values: []")),
        reject(expression("key: zone, operator: In"), &needs_values),
        reject(expression("key: zone, operator: In, values: []"), &needs_values),
        reject(expression("key: zone, operator: NotIn"), &needs_values),
        reject(expression("key: zone, operator: Exists, values: [a]"), &takes_none),
        reject(expression("key: zone, operator: DoesNotExist, values: [a]"), &takes_none),
        reject(expression("key: 'a b', operator: Exists"), bad_key("a b")),
        reject(expression("key: '', operator: Exists"), bad_key("")),
        reject(expression("key: zone, operator: In, values: ['a b']"), &bad_value),
        reject(expression("key: zone, operator: In, values: [good, '_bad']"), &bad_value),
        reject(expression("operator: Exists"), at(".key", "Required value")),
        reject(expression("key: zone"), at(".operator", "Required value")),
    ])
    .await;
}
