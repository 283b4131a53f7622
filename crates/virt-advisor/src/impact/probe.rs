//! Asks KubeVirt's own webhook: a dry run of the eviction of each virtual machine that a plan reaches. Nothing is evicted.

use std::collections::HashMap;

use advisor::blast_radius::{BlastRadius, DrainEffect, GuestOutcome, ObservedCluster, Pod};
use futures::{StreamExt, stream};
use kube_io::{Class, RequestError};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::reader::Reader;

/// So many evictions are asked for at a time.
const AT_A_TIME: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ProbeResult {
    /// The eviction would be carried out: the guest is shut down.
    ShutDown,
    /// KubeVirt would move it, or have its own controller take it away.
    Evacuated,
    /// The eviction would be refused.
    Refused,
    /// There is no answer.
    NotAsked,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ProbeAnswer")]
pub(crate) struct Answer {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) effect: DrainEffect,
    pub(crate) result: ProbeResult,
    /// Whether the answer fits what was computed. Absent without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agrees: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

pub(super) async fn probe(reader: &Reader, radius: &BlastRadius, observed: &ObservedCluster) -> Vec<Answer> {
    let running: HashMap<(&str, &str), &Pod> =
        observed.pods.items().iter().filter_map(|pod| Some(((pod.instance()?, pod.node.as_str()), pod))).collect();
    let guests = radius.pools.iter().flat_map(|pool| &pool.nodes).flat_map(|node| &node.guests);
    let asked = guests.map(|outcome| {
        let pod = running.get(&(outcome.uid.as_str(), outcome.node.as_str())).copied();
        async move {
            match pod {
                Some(pod) => answer(outcome, evict(reader, pod).await),
                None => unasked(outcome, "its pod is not known".into()),
            }
        }
    });
    // In order, so that two runs can be compared.
    stream::iter(asked).buffered(AT_A_TIME).collect().await
}

async fn evict(reader: &Reader, pod: &Pod) -> Result<(), RequestError> {
    let Pod { namespace, name, .. } = pod;
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction");
    let body = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"namespace": namespace, "name": name},
        "deleteOptions": {"dryRun": ["All"]},
    });
    let doing = format!("asking for the eviction of {namespace}/{name}");
    let path = format!("{path}?dryRun=All");
    reader.api_server().send_body(http::Method::POST, path, "application/json", &body, doing).await.map(drop)
}

fn answer(outcome: &GuestOutcome, response: Result<(), RequestError>) -> Answer {
    let (result, message) = match response {
        Ok(()) => (ProbeResult::ShutDown, None),
        Err(error) if error.message.contains("Eviction triggered evacuation") => {
            (ProbeResult::Evacuated, Some(error.message))
        }
        // A budget answers as a busy server does, and only its words tell the two apart.
        Err(error) if error.class == Class::WebhookDenied || error.message.contains("disruption budget") => {
            (ProbeResult::Refused, Some(error.message))
        }
        Err(error) => return unasked(outcome, error.message),
    };
    let agrees = match outcome.effect {
        DrainEffect::Unknown => None,
        DrainEffect::MovesLive => Some(result == ProbeResult::Evacuated),
        DrainEffect::Restarts | DrainEffect::StaysDown => Some(result == ProbeResult::ShutDown),
        DrainEffect::BlocksDrain if outcome.hosted_cluster => Some(result == ProbeResult::Evacuated),
        DrainEffect::BlocksDrain => Some(result == ProbeResult::Refused),
    };
    Answer { result, agrees, message, ..unasked(outcome, String::new()) }
}

fn unasked(outcome: &GuestOutcome, message: String) -> Answer {
    Answer {
        namespace: outcome.namespace.clone(),
        name: outcome.name.clone(),
        effect: outcome.effect,
        result: ProbeResult::NotAsked,
        agrees: None,
        message: Some(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(effect: DrainEffect, hosted_cluster: bool) -> GuestOutcome {
        let text = String::new;
        GuestOutcome {
            namespace: "n".into(),
            name: "a".into(),
            uid: text(),
            node: text(),
            effect,
            cause: text(),
            reason: None,
            message: None,
            hosted_cluster,
            shutdown_seconds: None,
        }
    }

    #[test]
    fn the_answer_of_kubevirt_is_compared_with_what_was_computed() {
        let refused = |message: &str, class| Err(RequestError::other(String::new(), message.into(), class));
        let evacuated = || {
            refused("admission webhook denied the request: Eviction triggered evacuation of VMI \"n/a\"", Class::Busy)
        };
        let in_progress =
            || refused("Evacuation in progress: Eviction triggered evacuation of VMI \"n/a\"", Class::WebhookDenied);
        let blocked = || {
            refused("VMI a is configured with an eviction strategy but is not live-migratable", Class::WebhookDenied)
        };
        for (effect, hosted, response, result, agrees) in [
            (DrainEffect::MovesLive, false, evacuated(), ProbeResult::Evacuated, Some(true)),
            (DrainEffect::MovesLive, false, in_progress(), ProbeResult::Evacuated, Some(true)),
            (DrainEffect::MovesLive, false, Ok(()), ProbeResult::ShutDown, Some(false)),
            (DrainEffect::BlocksDrain, false, blocked(), ProbeResult::Refused, Some(true)),
            (DrainEffect::BlocksDrain, true, evacuated(), ProbeResult::Evacuated, Some(true)),
            (DrainEffect::BlocksDrain, false, Ok(()), ProbeResult::ShutDown, Some(false)),
            (DrainEffect::Restarts, false, Ok(()), ProbeResult::ShutDown, Some(true)),
            (DrainEffect::StaysDown, false, evacuated(), ProbeResult::Evacuated, Some(false)),
            (DrainEffect::Unknown, false, Ok(()), ProbeResult::ShutDown, None),
            (
                DrainEffect::Restarts,
                false,
                refused("would violate the pod's disruption budget", Class::Busy),
                ProbeResult::Refused,
                Some(false),
            ),
            (DrainEffect::MovesLive, false, refused("may not", Class::Forbidden), ProbeResult::NotAsked, None),
            (DrainEffect::MovesLive, false, refused("too many requests", Class::Busy), ProbeResult::NotAsked, None),
        ] {
            let found = answer(&outcome(effect, hosted), response.clone());
            assert_eq!((found.result, found.agrees), (result, agrees), "{effect:?} {response:?}");
        }
    }
}
