//! The requests that plans need: paths of objects, reads, and changes with their dry runs.

use advisor::{Kind, ObjectRef};
use http::Method;
use kube_io::{ApiServer, RequestError};
use serde_json::{Value, json};

pub(crate) enum TargetWrite<'a> {
    Apply { fields: &'a Value, force: bool },
    JsonPatch(&'a Value),
    Delete { preconditions: Value },
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteMode {
    DryRun,
    Write,
}

pub(crate) async fn get(api_server: &ApiServer, reference: &ObjectRef, version: &str) -> Result<Value, RequestError> {
    api_server.get(path(reference, version), format!("reading {reference}")).await
}

pub(crate) async fn list(
    api_server: &ApiServer,
    kind: &'static Kind,
    version: &str,
) -> Result<Vec<Value>, RequestError> {
    let mut list = api_server.get(collection(kind, None, version), format!("listing {}", kind.plural)).await?;
    Ok(match list["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    })
}

/// Makes a change under a field manager, or a dry run of it. Returns the object after the change.
pub(crate) async fn change(
    api_server: &ApiServer,
    reference: &ObjectRef,
    version: &str,
    manager: &str,
    change: TargetWrite<'_>,
    mode: WriteMode,
) -> Result<Value, RequestError> {
    let path = path(reference, version);
    let (verb, dry_run) = match mode {
        WriteMode::DryRun => ("previewing", "dryRun=All&"),
        WriteMode::Write => ("changing", ""),
    };
    let query = format!("{dry_run}fieldManager={manager}&fieldValidation=Strict");
    let doing = format!("{verb} {reference}");
    match change {
        TargetWrite::Apply { fields, force } => {
            let force = if force { "&force=true" } else { "" };
            let uri = format!("{path}?{query}{force}");
            api_server.send_body(Method::PATCH, uri, "application/apply-patch+yaml", fields, doing).await
        }
        TargetWrite::JsonPatch(patch) => {
            let uri = format!("{path}?{query}");
            api_server.send_body(Method::PATCH, uri, "application/json-patch+json", patch, doing).await
        }
        TargetWrite::Delete { preconditions } => {
            let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
            if mode == WriteMode::DryRun {
                options["dryRun"] = json!(["All"]);
            }
            let uri = format!("{path}?{}", dry_run.trim_end_matches('&'));
            api_server.send_body(Method::DELETE, uri, "application/json", &options, doing).await
        }
    }
}

fn path(reference: &ObjectRef, version: &str) -> String {
    object_path(reference.kind, reference.namespace, &reference.name, version)
}

/// Where an object is found. Names from fields of other objects lead to no other path.
pub fn object_path(kind: &Kind, namespace: Option<&str>, name: &str, version: &str) -> String {
    format!("{}/{}", collection(kind, namespace, version), segment(name))
}

/// Encodes a name. Some names come from fields of other objects, and must not lead to another path.
fn segment(name: &str) -> String {
    let plain = |byte: u8| {
        byte.is_ascii_alphanumeric() || b"-_:".contains(&byte) || (byte == b'.' && !name.trim_matches('.').is_empty())
    };
    let encoded = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(encoded).collect()
}

fn collection(kind: &Kind, namespace: Option<&str>, version: &str) -> String {
    let root = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
    let namespace = namespace.map_or_else(String::new, |namespace| format!("/namespaces/{}", segment(namespace)));
    format!("{root}/{version}{namespace}/{}", kind.plural)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_segment_of_a_path() {
        for (name, expected) in [
            ("99-worker-psi-karg", "99-worker-psi-karg"),
            ("kubedeschedulers.operator.openshift.io", "kubedeschedulers.operator.openshift.io"),
            ("system:node", "system:node"),
            ("../../secrets", "..%2F..%2Fsecrets"),
            ("..", "%2E%2E"),
            ("x?watch=true", "x%3Fwatch%3Dtrue"),
            ("a b", "a%20b"),
        ] {
            assert_eq!(segment(name), expected);
        }
    }
}
