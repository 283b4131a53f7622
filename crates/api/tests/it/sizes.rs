//! How large things may be: the longest texts and lists that are taken, one more, and far too much.

use crate::{
    manifest::{busy, density, example, guest, selector},
    server::Server,
    table::{accept, check, reject, store},
};

const MEBIBYTE: usize = 1 << 20;

fn list(count: usize, item: impl FnMut(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn texts_are_bounded() {
    let too_long = |path: &str, most: usize| format!("{path}: Too long: may not be more than {most} bytes");
    let reason = |text: &str| example(&format!("approval: {{reason: '{text}'}}"));
    let digest = |text: &str| example(&format!("approval: {{planDigest: '{text}'}}"));
    let wait = |text: &str| example(&format!("waitTimeout: {text}"));
    let cpu = |text: &str| guest(&format!("cpu: '{text}', memory: 4Gi"));
    let label = |value: &str| selector(&format!("matchLabels: {{a: {value}}}"));
    check([
        accept(reason(&"x".repeat(1024))),
        reject(reason(&"x".repeat(1025)), too_long("spec.approval.reason", 1024)),
        // Characters count, whatever the message says.
        accept(reason(&"ß".repeat(1024))),
        accept(wait(&"1s".repeat(32))),
        reject(wait(&"1s".repeat(33)), too_long("spec.waitTimeout", 64)),
        // The longest one that the digits allow still is a duration to CEL.
        accept(wait(&"99999h".repeat(10))),
        accept(wait(&"9999999m".repeat(8))),
        reject(digest(&"a".repeat(129)), too_long("spec.approval.planDigest", 128)),
        accept(cpu(&format!("{:0>32}", 2))),
        reject(cpu(&format!("{:0>33}", 2)), too_long("spec.resources.cpu", 32)),
        accept(label(&"x".repeat(63))),
        reject(label(&"x".repeat(64)), "matchLabels.a: Too long: may not be more than 63 bytes"),
    ])
    .await;
}

#[tokio::test]
async fn lists_are_bounded_and_full_ones_stay_within_the_budget_of_the_rules() {
    // The longest key there is: a prefix of 253 characters, a slash, and a name of 63.
    let prefix = format!("{}.{}", "p".repeat(189), "p".repeat(63));
    let key = |index: usize| format!("{prefix}/{index:x>63}");
    let labels =
        |count| format!("matchLabels: {{{}}}", list(count, |index| format!("{}: {}", key(index), "v".repeat(63))));
    let values = |count| list(count, |index| format!("{index:v>63}"));
    let expressions = |count, values: &str| {
        let one = |index| format!("{{key: {}, operator: In, values: [{values}]}}", key(index));
        format!("matchExpressions: [{}]", list(count, one))
    };
    check([
        accept(selector(&labels(32))),
        reject(selector(&labels(33)), "matchLabels: Too many: 33: must have at most 32 items"),
        accept(selector(&expressions(32, "a"))),
        reject(selector(&expressions(33, "a")), "matchExpressions: Too many: 33: must have at most 32 items"),
        accept(selector(&expressions(1, &values(32)))),
        reject(
            selector(&expressions(1, &values(33))),
            "matchExpressions[0].values: Too many: 33: must have at most 32 items",
        ),
        accept(selector(&format!("{}, {}", labels(32), expressions(32, &values(32))))),
    ])
    .await;
}

#[tokio::test]
async fn a_text_of_a_mebibyte_is_refused_in_few_words() {
    let server = Server::shared().await;
    let huge = "x".repeat(MEBIBYTE);
    let cases = [
        (
            example(&format!("approval: {{reason: {huge}}}")),
            "spec.approval.reason: Too long: may not be more than 1024 bytes",
        ),
        (example(&format!("waitTimeout: {huge}")), "spec.waitTimeout: Too long: may not be more than 64 bytes"),
        (guest(&format!("cpu: {huge}, memory: 4Gi")), "spec.resources.cpu: Too long: may not be more than 32 bytes"),
        (busy(&format!("memory: {huge}")), "spec.utilization.memory: Too long: may not be more than 32 bytes"),
        (selector(&format!("matchLabels: {{a: {huge}}}")), "matchLabels.a: Too long: may not be more than 63 bytes"),
        (density(&format!("ksm: {huge}")), r#"unknown field "spec.options.virtHigherDensity.ksm""#),
        (
            example("").with_metadata(&format!("annotations: {{a: {huge}}}")),
            "metadata.annotations: Too long: may not be more than 262144 bytes",
        ),
    ];
    for (manifest, message) in cases {
        let answer = server.dry_run(&manifest, "Strict").await;
        assert!(answer.message().contains(message), "{message}: {} {:.2000}", answer.code, answer.message());
        assert!(answer.message().len() < 2_000, "{message}: {} bytes", answer.message().len());
    }
}

#[tokio::test]
async fn an_object_of_a_mebibyte_is_checked_like_any_other() {
    let huge = "x".repeat(MEBIBYTE);
    check([
        reject(example(&format!("action: {huge}")), r#"spec.action: Unsupported value: "xxx"#),
        store(density(&format!("ksm: {huge}")), "spec.options.virtHigherDensity", "{enableSwap: true}").silently(),
        reject(
            selector(&format!("matchExpressions: [{}]", list(40_000, |_| "{key: a, operator: Exists}".to_owned()))),
            "Too many: 40000: must have at most 32 items",
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_request_above_three_mebibytes_is_not_read() {
    let huge = "x".repeat(3 * MEBIBYTE);
    let answer = Server::shared().await.dry_run(&example(&format!("approval: {{reason: {huge}}}")), "Strict").await;
    assert_eq!((answer.code, answer.message()), (413, "Request entity too large: limit is 3145728"));
}
