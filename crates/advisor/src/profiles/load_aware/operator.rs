//! Whether the descheduler's operator has taken over the configuration, according to its conditions and its deployment.
//! That operator sets a condition for some refusals and only logs others. Its deployment names the generation that it was made for,
//! so those refusals are visible too.

use serde_json::Value;

use super::descheduler::target;
use crate::{Access, Effect, Facts, ObjectRef, Query, kind::DEPLOYMENT};

const NAMESPACE: &str = "openshift-kube-descheduler-operator";

/// Annotation on the pods of the descheduler: the generation of the KubeDescheduler that they were deployed for.
const GENERATION: &str = "kubedeschedulers.operator.openshift.io/cluster";

fn operator() -> ObjectRef {
    ObjectRef::namespaced(&DEPLOYMENT, NAMESPACE, "descheduler-operator")
}

fn operand() -> ObjectRef {
    ObjectRef::namespaced(&DEPLOYMENT, NAMESPACE, "descheduler")
}

pub(super) fn access() -> Vec<Access> {
    vec![Access::Read(operator()), Access::Read(operand())]
}

pub(super) fn wants(facts: &Facts) -> Vec<Query> {
    let operand = is_there(facts).then(|| Query::Optional(operand()));
    [Query::Optional(operator())].into_iter().chain(operand).collect()
}

/// Whether the descheduler's operator runs.
fn is_there(facts: &Facts) -> bool {
    facts.optional(&operator()).is_some()
        || facts.object(&target()).is_some_and(|live| conditions(live).next().is_some())
}

/// The note if the descheduler's operator does not run.
pub(super) fn note(facts: &Facts) -> Option<String> {
    let why = match facts.is_denied(&operator()) {
        true => format!("{} may not be read", operator()),
        false => format!("there is no {}", operator()),
    };
    (!is_there(facts)).then(|| {
        format!("No operator reports on {}: {why}. What is written counts as done, and nobody confirms that it is in effect", target())
    })
}

pub(super) fn effect(facts: &Facts) -> Effect {
    if !is_there(facts) {
        return Effect::Unreported;
    }
    let about = |text: String| format!("KubeDescheduler 'cluster' {text}");
    let Some(live) = facts.object(&target()) else {
        return Effect::Pending(about("waits for its operator".to_owned()));
    };
    if let Some(why) = refusal(live) {
        return Effect::Refused(about(format!("is refused by its operator: {why}")));
    }
    let generation = live.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default();
    let observed = live.pointer("/status/observedGeneration").and_then(Value::as_i64).filter(|seen| *seen > 0);
    if let Some(seen) = observed.filter(|seen| *seen < generation) {
        return Effect::Pending(about(format!("waits for its operator (at generation {seen} of {generation})")));
    }
    match facts.optional(&operand()) {
        Some(deployment) => match undeployed(deployment, generation) {
            Some(why) => Effect::Pending(about(why)),
            None => Effect::Confirmed,
        },
        None if facts.optional(&operator()).is_some() && !facts.is_denied(&operand()) => {
            Effect::Pending(about("waits for its operator, which has not deployed a descheduler yet".to_owned()))
        }
        None => Effect::Confirmed,
    }
}

fn conditions(live: &Value) -> impl Iterator<Item = &Value> {
    live.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten()
}

/// Why the operator refuses it, from the message of the condition, or else from its reason.
fn refusal(live: &Value) -> Option<&str> {
    let is = |condition: &Value, status: &str| condition["status"] == status;
    let is_bad = |condition: &&Value| match condition["type"].as_str().unwrap_or_default() {
        "Available" => is(condition, "False"),
        kind => kind.ends_with("Degraded") && is(condition, "True"),
    };
    let text = |condition: &'_ Value, field: &str| condition[field].as_str().is_some_and(|text| !text.is_empty());
    let condition = conditions(live).find(is_bad)?;
    let field = ["message", "reason", "type"].into_iter().find(|field| text(condition, field))?;
    condition[field].as_str()
}

/// Why the deployment is not of this generation yet.
fn undeployed(deployment: &Value, generation: i64) -> Option<String> {
    let number = |at: &str| deployment.pointer(at).and_then(Value::as_i64).unwrap_or_default();
    let annotations = &deployment["spec"]["template"]["metadata"]["annotations"];
    let of = annotations[GENERATION].as_str();
    if let Some(of) = of.filter(|of| *of != generation.to_string()) {
        return Some(format!(
            "waits for its operator, whose {} is of generation {of} and not {generation}. If that lasts, the operator refuses \
             the configuration: see the log of {}",
            operand(),
            operator()
        ));
    }
    let replicas = deployment.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    if replicas == 0 {
        return Some(format!("is not carried out: its operator has scaled {} to 0", operand()));
    }
    let is_current = number("/status/observedGeneration") >= number("/metadata/generation");
    let is_up = number("/status/updatedReplicas") >= replicas && number("/status/availableReplicas") >= replicas;
    (!(is_current && is_up)).then(|| format!("waits for {} to be available", operand()))
}
