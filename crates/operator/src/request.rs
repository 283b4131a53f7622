//! Requests as values: every one has a deadline, none is repeated behind our back, and errors say what was being done.

use std::time::Duration;

use advisor::{Kind, ObjectRef};
use http::{Method, Request};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::{Class, RequestError, connect};

const READ: Duration = Duration::from_secs(10);
/// Changes and their dry runs go through admission webhooks, which have ten seconds each.
const CHANGE: Duration = Duration::from_secs(30);

/// The API server, as far as plans need it.
#[derive(Clone)]
pub struct Kubernetes {
    client: Client,
    read: Duration,
    change: Duration,
}

impl std::fmt::Debug for Kubernetes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kubernetes")
    }
}

pub(crate) enum Change<'a> {
    Apply { fields: &'a Value, force: bool },
    JsonPatch(&'a Value),
    Delete { preconditions: Value },
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    DryRun,
    Write,
}

impl Kubernetes {
    /// Retries are turned off: whether a request may be repeated is for us to say, request by request. `component` is what
    /// the API server's audit log calls us.
    pub fn new(config: Config, component: &str) -> Result<Self, RequestError> {
        let client = connect::client(config, component);
        let client = client.map_err(|error| RequestError::new("connecting to the API server".into(), &error))?;
        Ok(Kubernetes::over(client))
    }

    /// Over a client that retries nothing by itself.
    pub fn over(client: Client) -> Self {
        Kubernetes { client, read: READ, change: CHANGE }
    }

    /// The same with another deadline for every request.
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Kubernetes { read: deadline, change: deadline, ..self }
    }

    pub(crate) async fn get(&self, reference: &ObjectRef, version: &str) -> Result<Value, RequestError> {
        let request = build(Method::GET, path(reference, version), None, Vec::new());
        self.send(request, self.read, format!("reading {reference}")).await
    }

    pub(crate) async fn list(&self, kind: &'static Kind, version: &str) -> Result<Vec<Value>, RequestError> {
        let request = build(Method::GET, collection(kind, None, version), None, Vec::new());
        let mut list: Value = self.send(request, self.read, format!("listing {}", kind.plural)).await?;
        Ok(match list["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        })
    }

    /// Makes a change under a field manager, or asks what would come of it. The answer is the object as it is then, or would be.
    pub(crate) async fn change(
        &self,
        reference: &ObjectRef,
        version: &str,
        manager: &str,
        change: Change<'_>,
        mode: Mode,
    ) -> Result<Value, RequestError> {
        let path = path(reference, version);
        let dry_run = if mode == Mode::DryRun { "dryRun=All&" } else { "" };
        let query = format!("{dry_run}fieldManager={manager}&fieldValidation=Strict");
        let request = match change {
            Change::Apply { fields, force } => {
                let force = if force { "&force=true" } else { "" };
                let body = fields.to_string().into_bytes();
                build(Method::PATCH, format!("{path}?{query}{force}"), Some("application/apply-patch+yaml"), body)
            }
            Change::JsonPatch(patch) => {
                let body = patch.to_string().into_bytes();
                build(Method::PATCH, format!("{path}?{query}"), Some("application/json-patch+json"), body)
            }
            Change::Delete { preconditions } => {
                let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
                if mode == Mode::DryRun {
                    options["dryRun"] = json!(["All"]);
                }
                let query = dry_run.trim_end_matches('&');
                build(
                    Method::DELETE,
                    format!("{path}?{query}"),
                    Some("application/json"),
                    options.to_string().into_bytes(),
                )
            }
        };
        let verb = if mode == Mode::DryRun { "previewing" } else { "changing" };
        self.send(request, self.change, format!("{verb} {reference}")).await
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Sends any other request, under the deadline of a change.
    pub(crate) async fn call(
        &self,
        method: Method,
        uri: String,
        content: Option<&str>,
        body: &Value,
        doing: String,
    ) -> Result<Value, RequestError> {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.send(build(method, uri, content, body), self.change, doing).await
    }

    async fn send(
        &self,
        request: http::Result<Request<Vec<u8>>>,
        deadline: Duration,
        doing: String,
    ) -> Result<Value, RequestError> {
        let request = request.map_err(|error| RequestError::other(doing.clone(), error.to_string(), Class::Other))?;
        match tokio::time::timeout(deadline, self.client.request::<Value>(request)).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(RequestError::new(doing, &error)),
            Err(_) => Err(RequestError::timed_out(doing, deadline.as_secs())),
        }
    }
}

fn build(method: Method, uri: String, content: Option<&str>, body: Vec<u8>) -> http::Result<Request<Vec<u8>>> {
    let request = Request::builder().method(method).uri(uri);
    let request = match content {
        Some(content) => request.header(http::header::CONTENT_TYPE, content),
        None => request,
    };
    request.body(body)
}

fn path(reference: &ObjectRef, version: &str) -> String {
    format!("{}/{}", collection(reference.kind, reference.namespace, version), segment(&reference.name))
}

/// Some names come from fields of other objects; whatever they hold must not lead to another path.
fn segment(name: &str) -> String {
    let plain = |byte: u8| {
        byte.is_ascii_alphanumeric() || b"-_:".contains(&byte) || (byte == b'.' && !name.trim_matches('.').is_empty())
    };
    let encoded = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(encoded).collect()
}

fn collection(kind: &Kind, namespace: Option<&str>, version: &str) -> String {
    let root = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
    let namespace = namespace.map_or_else(String::new, |namespace| format!("/namespaces/{namespace}"));
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
