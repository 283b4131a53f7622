//! Keeps the approval policy in the cluster, for installations that cannot ship it. [`advisor::admission`] says what that is.
//!
//! Whoever changes or deletes it has their change undone: each object is watched by its name, and compared from time to time.

use std::time::Duration;

use advisor::admission::{self, PolicyMode};
use http::Method;
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use kube::{Api, Client, runtime::watcher};
use kube_io::{ApiServer, Backoff, BackoffPolicy, Class, RequestError, forward};
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinSet, time::sleep};
use tracing::{debug, info, warn};

use crate::watch_settings::WatchSettings;

/// Changes within this time are answered together.
const SETTLING: Duration = Duration::from_millis(200);

const QUERY: &str = "?fieldManager=virt-advisor-operator";

/// Keeps the policy as the mode says, or removes it if the mode is Off. Never returns.
pub(crate) async fn keep(api_server: ApiServer, mode: PolicyMode, interval: Duration, watching: WatchSettings) {
    let mut backoff = Backoff::new(BackoffPolicy::REQUESTS, watching.clock.clone());
    let (sender, mut changes) = mpsc::channel(1);
    let mut watches = JoinSet::new();
    if mode != PolicyMode::Off {
        watch(&mut watches, api_server.watch_client(), &sender, &watching);
    }
    let mut is_in_effect = false;
    loop {
        let done = match mode {
            PolicyMode::Off => remove(&api_server).await,
            PolicyMode::Audit | PolicyMode::Enforce => ensure(&api_server, mode).await,
        };
        let wait = match done {
            Ok(()) if mode == PolicyMode::Off => std::future::pending().await,
            Ok(()) => {
                if !is_in_effect {
                    info!(?mode, "the approval policy is in the cluster");
                }
                is_in_effect = true;
                backoff.reset();
                interval
            }
            Err(error) => {
                match error.class.is_transient() {
                    true => debug!(%error, "the approval policy; trying again"),
                    false => warn!(%error, "the approval policy; trying again"),
                }
                backoff.failed()
            }
        };
        tokio::select! {
            _ = changes.recv() => sleep(SETTLING).await,
            () = sleep(wait) => {}
        }
        while changes.try_recv().is_ok() {}
    }
}

fn watch(watches: &mut JoinSet<()>, client: &Client, sender: &mpsc::Sender<()>, watching: &WatchSettings) {
    for name in [admission::APPROVAL, admission::STATUS] {
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
        watches.spawn(forward(watching.watch(policies, config.clone()), |_| (), sender.clone()));
        let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
        watches.spawn(forward(watching.watch(bindings, config), |_| (), sender.clone()));
    }
}

/// Brings every object into the state that the mode asks for.
async fn ensure(api_server: &ApiServer, mode: PolicyMode) -> Result<(), RequestError> {
    let uri = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", admission::DEFINITION);
    let definition = api_server.get(uri, format!("reading definition {}", admission::DEFINITION)).await?;
    let uid = definition["metadata"]["uid"].as_str().unwrap_or_default();
    for wanted in admission::kept(mode, &own_user_name(api_server).await?, uid) {
        let uri = format!("{}{QUERY}", admission::path(&wanted));
        let doing = described("applying", &wanted);
        let apply = "application/apply-patch+yaml";
        let found = api_server.send_body(Method::PATCH, format!("{uri}&force=true"), apply, &wanted, doing).await?;
        if let Some(replacement) = admission::replacement(&found, &wanted) {
            let doing = described("replacing", &wanted);
            api_server.send_body(Method::PUT, uri, "application/json", &replacement, doing).await?;
            info!("{} was changed, and is as it was again", described("", &wanted).trim_start());
        }
    }
    Ok(())
}

/// Who the API server says that the operator is: a service account, or whoever runs it by hand.
async fn own_user_name(api_server: &ApiServer) -> Result<String, RequestError> {
    let uri = "/apis/authentication.k8s.io/v1/selfsubjectreviews".to_owned();
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let doing = || "asking for the own user name".to_owned();
    let answer = api_server.send_body(Method::POST, uri, "application/json", &review, doing()).await?;
    let name = answer.pointer("/status/userInfo/username").and_then(Value::as_str).map(str::to_owned);
    name.ok_or_else(|| RequestError::other(doing(), "the answer has no user name".into(), Class::Other))
}

/// Removes what an operator kept. What somebody else installed stays.
async fn remove(api_server: &ApiServer) -> Result<(), RequestError> {
    for path in admission::paths() {
        let found = match api_server.get(path.clone(), format!("reading {path}")).await {
            Ok(found) if admission::is_kept(&found) => found,
            Ok(_) => continue,
            Err(error) if error.class.is_absent() => continue,
            Err(error) => return Err(error),
        };
        let metadata = &found["metadata"];
        let conditions =
            json!({"preconditions": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}});
        let doing = described("deleting", &found);
        match api_server.send_body(Method::DELETE, path, "application/json", &conditions, doing).await {
            Ok(_) => info!("deleted {}", described("", &found).trim_start()),
            Err(error) if error.class.is_absent() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn described(doing: &str, object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{doing} {} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}
