//! Temporary.
use crate::{
    platform::{DENSITY, Platform, machine_config},
    pools::SWAP,
    running::{Running, item},
};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn debug() {
    let platform = Platform::shared().await;
    let _operator = Running::start(&platform).await;
    let done = platform.complete(DENSITY, json!({}), &[SWAP]).await;
    let show = async |what: &str| {
        let live = platform.get(&machine_config(SWAP, Value::Null)).await;
        let it: api::virt_platform_config::Item =
            serde_json::from_value(item(&done, "enable-kubelet-swap").clone()).unwrap();
        println!(
            "{what}: {:?}\n {}\n{:#}",
            advisor::drift::leaves(&it, Some(&live)).iter().map(ToString::to_string).collect::<Vec<_>>(),
            advisor::drift::fingerprint(&it, Some(&live)),
            live["metadata"]["managedFields"]
        );
    };
    show("applied").await;
    let ignition = |version: &str| machine_config(SWAP, json!({"config": {"ignition": {"version": version}}}));
    platform.patch("kubectl-edit", &ignition("3.4.0")).await;
    show("edited").await;
    platform.patch("kubectl-edit", &ignition("3.2.0")).await;
    show("restored").await;
}
