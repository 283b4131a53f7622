//! The values of single fields of a VirtPlatformConfig: every word, both ends of every range, and what lies beyond.

use crate::{
    manifest::{config, density, example, load_aware, profile, selector},
    table::{accept, check, each, of_type, reject},
};

#[tokio::test]
async fn every_word_of_every_set_is_accepted() {
    let operator = |word: &str| accept(selector(&format!("matchExpressions: [{{key: zone, operator: {word}}}]")));
    let cases = [
        each("load-aware-rebalancing | virt-higher-density | example-profile", |word| accept(profile(word, ""))),
        each("DryRun | Apply | Ignore", |word| accept(example(&format!("action: {word}")))),
        each("Abort | Continue", |word| accept(example(&format!("failurePolicy: {word}")))),
        each("true | false", |word| accept(example(&format!("bypassOptimisticLock: {word}")))),
        each("Automatic | Predictive", |word| accept(load_aware(&format!("mode: {word}")))),
        each("true | false", |word| accept(load_aware(&format!("enablePSIMetrics: {word}")))),
        each("Low | Medium | High | AsymmetricLow | AsymmetricMedium | AsymmetricHigh", |word| {
            accept(load_aware(&format!("devDeviationThresholds: {word}")))
        }),
        each("In, values: [a] | NotIn, values: [a] | Exists | DoesNotExist", operator),
    ];
    check(cases.into_iter().flatten()).await;
}

#[tokio::test]
async fn other_words_are_refused_with_the_known_ones() {
    check([
        reject(
            profile("faster-everything", ""),
            r#"spec.profile: Unsupported value: "faster-everything": supported values: "load-aware-rebalancing", "virt-higher-density", "example-profile""#,
        ),
        reject(profile("Example-Profile", ""), r#"spec.profile: Unsupported value: "Example-Profile""#),
        reject(config("example-profile", "profile: ''"), r#"spec.profile: Unsupported value: """#),
        reject(
            example("action: Delete"),
            r#"spec.action: Unsupported value: "Delete": supported values: "DryRun", "Apply", "Ignore""#,
        ),
        reject(example("action: apply"), r#"spec.action: Unsupported value: "apply""#),
        reject(example("action: ''"), r#"spec.action: Unsupported value: """#),
        reject(
            example("failurePolicy: Retry"),
            r#"spec.failurePolicy: Unsupported value: "Retry": supported values: "Abort", "Continue""#,
        ),
        reject(
            load_aware("mode: Manual"),
            r#"spec.options.loadAware.mode: Unsupported value: "Manual": supported values: "Automatic", "Predictive""#,
        ),
        reject(
            load_aware("devDeviationThresholds: Asymmetric"),
            r#"spec.options.loadAware.devDeviationThresholds: Unsupported value: "Asymmetric": supported values: "Low", "Medium", "High", "AsymmetricLow", "AsymmetricMedium", "AsymmetricHigh""#,
        ),
        reject(
            selector("matchExpressions: [{key: zone, operator: Gt, values: ['1']}]"),
            r#"nodeLabelSelector.matchExpressions[0].operator: Unsupported value: "Gt": supported values: "In", "NotIn", "Exists", "DoesNotExist""#,
        ),
    ])
    .await;
}

#[tokio::test]
async fn ranges_include_both_ends_and_nothing_beyond() {
    const LOAD_AWARE: &str = "spec.options.loadAware";
    const RATIO: &str = "spec.options.virtHigherDensity.memoryToRequestRatio";
    let below = |path: &str, field: &str, value: i64, least: i64| {
        format!(
            "{path}{field}: Invalid value: {value}: {path}{field} in body should be greater than or equal to {least}"
        )
    };
    let above = |path: &str, field: &str, value: i64, most: i64| {
        format!("{path}{field}: Invalid value: {value}: {path}{field} in body should be less than or equal to {most}")
    };
    check([
        accept(load_aware("deschedulingIntervalSeconds: 60")),
        accept(load_aware("deschedulingIntervalSeconds: 86400")),
        reject(
            load_aware("deschedulingIntervalSeconds: 59"),
            below(LOAD_AWARE, ".deschedulingIntervalSeconds", 59, 60),
        ),
        reject(
            load_aware("deschedulingIntervalSeconds: 86401"),
            above(LOAD_AWARE, ".deschedulingIntervalSeconds", 86401, 86400),
        ),
        reject(load_aware("deschedulingIntervalSeconds: 0"), below(LOAD_AWARE, ".deschedulingIntervalSeconds", 0, 60)),
        reject(
            load_aware("deschedulingIntervalSeconds: -60"),
            below(LOAD_AWARE, ".deschedulingIntervalSeconds", -60, 60),
        ),
        accept(load_aware("evictionLimitTotal: 1")),
        accept(load_aware("evictionLimitTotal: 1000")),
        reject(load_aware("evictionLimitTotal: 0"), below(LOAD_AWARE, ".evictionLimitTotal", 0, 1)),
        reject(load_aware("evictionLimitTotal: 1001"), above(LOAD_AWARE, ".evictionLimitTotal", 1001, 1000)),
        accept(load_aware("evictionLimitNode: 1")),
        accept(load_aware("evictionLimitNode: 100")),
        reject(load_aware("evictionLimitNode: 0"), below(LOAD_AWARE, ".evictionLimitNode", 0, 1)),
        reject(load_aware("evictionLimitNode: 101"), above(LOAD_AWARE, ".evictionLimitNode", 101, 100)),
        accept(density("memoryToRequestRatio: 100")),
        accept(density("memoryToRequestRatio: 300")),
        reject(density("memoryToRequestRatio: 99"), below(RATIO, "", 99, 100)),
        reject(density("memoryToRequestRatio: 301"), above(RATIO, "", 301, 300)),
        reject(density("memoryToRequestRatio: 2147483648"), above(RATIO, "", 2_147_483_648, 300)),
        // Too large for an integer of any kind.
        reject(density("memoryToRequestRatio: 9223372036854775808"), "must be of type int32"),
    ])
    .await;
}

#[tokio::test]
async fn a_value_of_another_type_is_refused() {
    check([
        reject(example("action: 1"), of_type("spec.action", "integer", "string")),
        reject(example("action: true"), of_type("spec.action", "boolean", "string")),
        reject(example("action: [Apply]"), of_type("spec.action", "array", "string")),
        reject(example("bypassOptimisticLock: 'true'"), of_type("spec.bypassOptimisticLock", "string", "boolean")),
        reject(example("bypassOptimisticLock: 1"), of_type("spec.bypassOptimisticLock", "integer", "boolean")),
        reject(example("waitTimeout: 30"), of_type("spec.waitTimeout", "integer", "string")),
        reject(example("waitTimeout: 1.5"), of_type("spec.waitTimeout", "number", "string")),
        reject(example("approval: yes"), of_type("spec.approval", "boolean", "object")),
        reject(example("options: []"), of_type("spec.options", "array", "object")),
        reject(example("options: none"), of_type("spec.options", "string", "object")),
        reject(
            load_aware("deschedulingIntervalSeconds: '60'"),
            of_type("spec.options.loadAware.deschedulingIntervalSeconds", "string", "integer"),
        ),
        reject(
            load_aware("deschedulingIntervalSeconds: 60.5"),
            of_type("spec.options.loadAware.deschedulingIntervalSeconds", "float64", "int32"),
        ),
        reject(
            density("memoryToRequestRatio: 150%"),
            of_type("spec.options.virtHigherDensity.memoryToRequestRatio", "string", "integer"),
        ),
        reject(
            density("ksmConfiguration: true"),
            of_type("spec.options.virtHigherDensity.ksmConfiguration", "boolean", "object"),
        ),
        reject(
            selector("matchLabels: {ksm: true}"),
            of_type(
                "spec.options.virtHigherDensity.ksmConfiguration.nodeLabelSelector.matchLabels.ksm",
                "boolean",
                "string",
            ),
        ),
        reject(
            selector("matchExpressions: {}"),
            of_type(
                "spec.options.virtHigherDensity.ksmConfiguration.nodeLabelSelector.matchExpressions",
                "object",
                "array",
            ),
        ),
        reject(config("example-profile", "profile: {}"), of_type("spec.profile", "object", "string")),
    ])
    .await;
}
