//! Asks KubeVirt's own webhook: a dry run of the eviction of each virtual machine that a plan reaches. Nothing is evicted.

use std::collections::HashMap;

use advisor::blast_radius::{BlastRadius, Fate, Observed, Outcome, Pod};
use futures::{StreamExt, stream};
use operator::{Class, RequestError};
use serde::Serialize;
use serde_json::json;

use crate::reader::Reader;

/// So many evictions are asked for at a time.
const AT_A_TIME: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Verdict {
    /// The eviction would be carried out: the guest is shut down.
    ShutDown,
    /// KubeVirt would move it, or have its own controller take it away.
    Evacuated,
    /// The eviction would be refused.
    Refused,
    /// There is no answer.
    NotAsked,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) fate: Fate,
    pub(crate) verdict: Verdict,
    /// Whether the answer fits what was computed. None without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agrees: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

pub(super) async fn probe(reader: &Reader, radius: &BlastRadius, observed: &Observed) -> Vec<Answer> {
    let running: HashMap<(&str, &str), &Pod> =
        observed.pods.items().iter().filter_map(|pod| Some(((pod.instance()?, pod.node.as_str()), pod))).collect();
    let machines = radius.pools.iter().flat_map(|pool| &pool.nodes).flat_map(|node| &node.machines);
    let asked = machines.map(|outcome| {
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

fn answer(outcome: &Outcome, result: Result<(), RequestError>) -> Answer {
    let (verdict, message) = match result {
        Ok(()) => (Verdict::ShutDown, None),
        Err(error) if error.message.contains("Eviction triggered evacuation") => {
            (Verdict::Evacuated, Some(error.message))
        }
        // A budget answers as a busy server does, and only its words tell the two apart.
        Err(error) if error.class == Class::WebhookDenied || error.message.contains("disruption budget") => {
            (Verdict::Refused, Some(error.message))
        }
        Err(error) => return unasked(outcome, error.message),
    };
    let agrees = match outcome.fate {
        Fate::Unknown => None,
        Fate::MovesLive => Some(verdict == Verdict::Evacuated),
        Fate::Restarts | Fate::StaysDown => Some(verdict == Verdict::ShutDown),
        Fate::BlocksDrain if outcome.hosted_cluster => Some(verdict == Verdict::Evacuated),
        Fate::BlocksDrain => Some(verdict == Verdict::Refused),
    };
    Answer { verdict, agrees, message, ..unasked(outcome, String::new()) }
}

fn unasked(outcome: &Outcome, message: String) -> Answer {
    Answer {
        namespace: outcome.namespace.clone(),
        name: outcome.name.clone(),
        fate: outcome.fate,
        verdict: Verdict::NotAsked,
        agrees: None,
        message: Some(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(fate: Fate, hosted_cluster: bool) -> Outcome {
        let text = String::new;
        Outcome {
            namespace: "n".into(),
            name: "a".into(),
            uid: text(),
            node: text(),
            fate,
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
        for (fate, hosted, result, verdict, agrees) in [
            (Fate::MovesLive, false, evacuated(), Verdict::Evacuated, Some(true)),
            (Fate::MovesLive, false, in_progress(), Verdict::Evacuated, Some(true)),
            (Fate::MovesLive, false, Ok(()), Verdict::ShutDown, Some(false)),
            (Fate::BlocksDrain, false, blocked(), Verdict::Refused, Some(true)),
            (Fate::BlocksDrain, true, evacuated(), Verdict::Evacuated, Some(true)),
            (Fate::BlocksDrain, false, Ok(()), Verdict::ShutDown, Some(false)),
            (Fate::Restarts, false, Ok(()), Verdict::ShutDown, Some(true)),
            (Fate::StaysDown, false, evacuated(), Verdict::Evacuated, Some(false)),
            (Fate::Unknown, false, Ok(()), Verdict::ShutDown, None),
            (
                Fate::Restarts,
                false,
                refused("would violate the pod's disruption budget", Class::Busy),
                Verdict::Refused,
                Some(false),
            ),
            (Fate::MovesLive, false, refused("may not", Class::Forbidden), Verdict::NotAsked, None),
            (Fate::MovesLive, false, refused("too many requests", Class::Busy), Verdict::NotAsked, None),
        ] {
            let found = answer(&outcome(fate, hosted), result.clone());
            assert_eq!((found.verdict, found.agrees), (verdict, agrees), "{fate:?} {result:?}");
        }
    }
}
