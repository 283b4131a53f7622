//! The webhook that the API server asks before it evicts a pod: HTTPS on loopback, with a certificate of its own.

use std::future::Future;

use axum::Router;
use k8s_openapi::{ByteString, api::admissionregistration::v1::ValidatingWebhookConfiguration};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use serving::{
    LoopbackServer,
    admission::{reviewed_by, too_many_requests},
};
use tracing::info;

use super::{
    Answer, FIELD_MANAGER, StartError, answer,
    answer::guest_in,
    cluster::{Kind, setting},
};
use crate::{STAND_IN_LABEL, Time};

const NAME: &str = "virt-api-validator";
const WEBHOOK: &str = "virt-launcher-eviction-interceptor.kubevirt.io";
const PATH: &str = "/launcher-eviction-validate";

/// Listens and registers. The result serves until it is dropped.
pub(super) async fn start(client: Client, time: Time) -> Result<impl Future<Output = ()> + Send + 'static, StartError> {
    let server = LoopbackServer::bind().await?;
    register(&client, server.url(PATH), server.certificate()).await?;
    let review = reviewed_by(move |request: Value| {
        let (client, time) = (client.clone(), time.clone());
        async move {
            let message = denial(&client, &time, &request).await?;
            info!(target: FIELD_MANAGER, "stand-in: no eviction of {}: {message}", request["name"]);
            Some(too_many_requests(message))
        }
    });
    Ok(async move {
        server.run(Router::new().route(PATH, review)).await;
    })
}

async fn register(client: &Client, url: String, certificate: &str) -> Result<(), StartError> {
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME, "labels": {STAND_IN_LABEL: "true"}},
        "webhooks": [{
            "name": WEBHOOK, "admissionReviewVersions": ["v1"], "sideEffects": "NoneOnDryRun", "failurePolicy": "Fail",
            "clientConfig": {"url": url, "caBundle": ByteString(certificate.as_bytes().to_vec())},
            "matchConditions": [
                {"name": "only-vms", "expression": "object.metadata.name.startsWith(\"virt-launcher\")"},
            ],
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"],
                "scope": "Namespaced",
            }],
        }],
    });
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let answer = api.patch(NAME, &params, &Patch::Apply(&configuration)).await;
    answer.map(|_| ()).map_err(|error| StartError::Register(Box::new(error)))
}

/// Why an eviction is refused. A guest that can leave its node is marked first, unless it is a dry run.
async fn denial(client: &Client, time: &Time, request: &Value) -> Option<String> {
    let namespace = request["namespace"].as_str().unwrap_or_default();
    let api = |kind: Kind| Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &kind.resource());
    let failed = |error: kube::Error| Some(format!("kubevirt failed getting the vmi: {error}"));
    let pod = match api(Kind::Pod).get_opt(request["name"].as_str().unwrap_or_default()).await {
        Ok(pod) => pod?,
        Err(error) => return failed(error),
    };
    let name = guest_in(&pod)?;
    let (guest, kubevirts) = match api(Kind::Instance).get(name).await {
        Ok(guest) => {
            let all = Api::<DynamicObject>::all_with(client.clone(), &Kind::KubeVirt.resource());
            (guest, all.list(&ListParams::default()).await)
        }
        Err(error) => return failed(error),
    };
    let kubevirts = match kubevirts {
        Ok(kubevirts) => kubevirts.items,
        Err(error) => return failed(error),
    };
    let strategy = kubevirts.first().and_then(|it| setting(it, "/evictionStrategy")).and_then(Value::as_str);
    match answer(&pod, &guest, strategy) {
        Answer::Allow => None,
        Answer::Deny(message) => Some(message),
        Answer::Evacuate { message, .. } if request["dryRun"] == true => Some(message),
        Answer::Evacuate { node, message } => {
            let mark = Patch::Merge(json!({"status": {"evacuationNodeName": node}}));
            let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
            let doing = format!("marking {namespace}/{name}");
            match time.write(doing, api(Kind::Instance).patch(name, &params, &mark)).await {
                Ok(_) => Some(message),
                Err(error) => Some(format!("kubevirt failed marking the vmi for eviction: {error}")),
            }
        }
    }
}
