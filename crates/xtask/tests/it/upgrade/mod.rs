//! The operator is replaced on a running cluster, by a newer one and by an older one: nothing is lost, and nothing is written.

mod before_records;
mod next_release;

use std::time::Duration;

use advisor::machine::Intervals;
use devcluster::LogPosition;
use operator::OperatorSettings;
use serde_json::Value;
use testkit::{eventually, platform::Platform, running_operator::RunningOperator};

/// An operator of some version that rechecks often.
async fn operator(platform: &Platform, version: &str) -> RunningOperator {
    let recheck = Duration::from_millis(300);
    let intervals = Intervals { recheck, prerequisites: recheck, ..Intervals::default() };
    let settings = OperatorSettings { version: version.into(), intervals, ..OperatorSettings::default() };
    RunningOperator::start_with(platform, settings).await
}

/// Installs definitions, as an upgrade does it.
async fn define(platform: &Platform, definitions: &[Value]) {
    let definitions: Vec<_> = definitions.iter().map(|it| serde_json::from_value(it.clone()).unwrap()).collect();
    platform.cluster.access().install_crds(&definitions).await.unwrap();
}

/// Waits until the operator has rechecked what was applied so many times since a mark.
async fn until_rechecked(platform: &Platform, mark: LogPosition, times: usize) {
    eventually(format!("{times} rechecks"), async || {
        let requests = platform.requests_since(mark).await;
        let rechecks = requests.iter().filter(|request| request.resource == "kubedeschedulers").count();
        (rechecks >= times).then_some(())
    })
    .await;
}

/// Puts an object where the API server keeps it, without validation.
async fn store(platform: &Platform, object: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let group = text(&object["apiVersion"]).split('/').next().unwrap_or_default().to_owned();
    let (plural, metadata) = (format!("{}s", text(&object["kind"]).to_lowercase()), &object["metadata"]);
    let namespace = metadata["namespace"].as_str().map_or_else(String::new, |namespace| format!("/{namespace}"));
    let key = format!("/registry/{group}/{plural}{namespace}/{}", text(&metadata["name"]));
    platform.cluster.store(&key, object.to_string().as_bytes()).await.unwrap();
}
