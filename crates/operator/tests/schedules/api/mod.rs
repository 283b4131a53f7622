//! A model of the API server: the verbs that the operator uses and their answers. It knows no defaults, and no validation
//! except of records; `fidelity.rs` compares it with the real one.

pub(crate) mod fields;
pub(crate) mod kinds;
pub(crate) mod ownership;
mod rules;
pub(crate) mod shape;
pub(crate) mod store;
mod verbs;

use std::{collections::BTreeMap, sync::Arc};

use http::Method;
use serde_json::{Value, json};

use kinds::{Resource, resources};
use store::{Key, Store};
pub(crate) use verbs::merge_patch;

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) content: String,
    /// Whether only the metadata of objects are requested.
    pub(crate) metadata_only: bool,
    pub(crate) body: Value,
}

impl Request {
    pub(crate) fn new(method: Method, uri: &str, content: &str, accept: &str, body: &[u8]) -> Request {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let pair = |part: &str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (decode(name), decode(value))
        };
        Request {
            method,
            path: decode(path),
            query: query.split('&').filter(|part| !part.is_empty()).map(pair).collect(),
            content: content.to_owned(),
            metadata_only: accept.contains("as=PartialObjectMetadata"),
            body: serde_json::from_slice(body).unwrap_or_default(),
        }
    }

    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.query("watch").is_some()
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.query("dryRun").is_some() || self.body["dryRun"].is_array()
    }

    pub(crate) fn is_write(&self) -> bool {
        self.method != Method::GET && !self.is_dry_run()
    }

    /// The name in the field selector, if there is one.
    pub(crate) fn selected(&self) -> Option<&str> {
        self.query("fieldSelector")?.strip_prefix("metadata.name=")
    }

    /// Whether an object has the label of the label selector, if there is one.
    fn selects(&self, object: &Value) -> bool {
        let wanted = self.query("labelSelector").map(|selector| selector.split_once('=').unwrap_or((selector, "")));
        wanted.is_none_or(|(name, value)| object["metadata"]["labels"][name] == value)
    }
}

fn decode(text: &str) -> String {
    let mut bytes = text.bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        let digits = (byte == b'%').then(|| [bytes.next(), bytes.next()]);
        let value = digits.map(|digits| digits.into_iter().flatten().map(char::from).collect::<String>());
        match (byte, value) {
            (_, Some(value)) => decoded.push(u8::from_str_radix(&value, 16).unwrap_or(b'?')),
            (b'+', None) => decoded.push(b' '),
            (byte, None) => decoded.push(byte),
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    /// A text is sent as plain text.
    pub(crate) body: Arc<Value>,
}

impl Answer {
    pub(crate) fn ok(body: impl Into<Arc<Value>>) -> Answer {
        Answer { code: 200, body: body.into() }
    }

    pub(crate) fn failure(code: u16, reason: &str, message: String, details: Value) -> Answer {
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "details": details, "code": code,
        });
        Answer { code, body: body.into() }
    }

    pub(crate) fn reason(&self) -> &str {
        self.body["reason"].as_str().filter(|_| self.code >= 400).unwrap_or_default()
    }
}

/// The resource of a path.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) resource: &'static Resource,
    pub(crate) namespace: String,
    pub(crate) name: Option<String>,
    pub(crate) is_status: bool,
}

impl Target {
    pub(crate) fn of(path: &str) -> Option<Target> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        let plural = rest.first()?;
        let known = |resource: &&Resource| {
            (resource.group.as_str(), resource.version.as_str(), resource.plural.as_str()) == (group, version, *plural)
        };
        let resource = resources().iter().find(known)?;
        let name = rest.get(1).map(|&name| name.to_owned());
        Some(Target { resource, namespace: namespace.to_owned(), name, is_status: rest.get(2) == Some(&"status") })
    }

    pub(crate) fn key(&self) -> Key {
        Key::new(self.resource, &self.namespace, self.name.as_deref().unwrap_or_default())
    }

    fn details(&self) -> Value {
        json!({"name": self.name, "group": self.resource.group, "kind": self.resource.plural})
    }

    fn text(&self) -> String {
        let dot = if self.resource.group.is_empty() { "" } else { "." };
        format!("{}{dot}{} {:?}", self.resource.plural, self.resource.group, self.name.as_deref().unwrap_or_default())
    }

    fn not_found(&self) -> Answer {
        Answer::failure(404, "NotFound", format!("{} not found", self.text()), self.details())
    }

    pub(crate) fn moved(&self, why: &str) -> Answer {
        let message = format!("Operation cannot be fulfilled on {}: {why}", self.text());
        Answer::failure(409, "Conflict", message, self.details())
    }

    fn invalid(&self, why: &str) -> Answer {
        Answer::failure(422, "Invalid", format!("{} is invalid: {why}", self.text()), self.details())
    }
}

pub(crate) fn nothing_here() -> Answer {
    Answer { code: 404, body: Arc::new("404 page not found\n".into()) }
}

impl Store {
    /// Whether a kind is served at the moment.
    pub(crate) fn serves(&self, resource: &Resource) -> bool {
        let Some(definition) = &resource.definition else { return true };
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        self.get(&Key::new(kinds::named("customresourcedefinitions"), "", name)).is_some()
    }

    /// Carries out a request at a time.
    pub(crate) fn handle(&mut self, request: &Request, time: &str) -> Answer {
        match Target::of(&request.path).filter(|target| self.serves(target.resource)) {
            Some(target) if request.method == Method::GET => self.read(request, &target, self.version),
            Some(target) => self.write(request, &target, time),
            None => nothing_here(),
        }
    }

    /// Answers a read from an earlier version.
    pub(crate) fn read(&self, request: &Request, target: &Target, version: u64) -> Answer {
        let (resource, key) = (target.resource, target.key());
        if target.name.is_some() {
            let found = match version == self.version {
                true => self.get(&key).cloned(),
                false => self.list_at(&resource.plural, version).remove(&key),
            };
            return match found {
                Some(object) => Answer::ok(object),
                None => target.not_found(),
            };
        }
        let wanted = |key: &Key| {
            (target.namespace.is_empty() || key.namespace == target.namespace)
                && request.selected().is_none_or(|name| key.name == name)
        };
        let objects = self.list_at(&resource.plural, version);
        let shown = |object: &Value| if request.metadata_only { metadata_of(object) } else { object.clone() };
        let wanted = objects.iter().filter(|(key, object)| wanted(key) && request.selects(object));
        let items: Vec<Value> = wanted.map(|(_, object)| shown(object)).collect();
        let (kind, api_version) = match request.metadata_only {
            true => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned()),
            false => (format!("{}List", resource.kind), resource.api_version()),
        };
        // The real server leaves the list out then.
        let items = if items.is_empty() && request.metadata_only { Value::Null } else { items.into() };
        let metadata = json!({"resourceVersion": version.to_string()});
        Answer::ok(json!({"kind": kind, "apiVersion": api_version, "metadata": metadata, "items": items}))
    }
}

pub(crate) fn metadata_of(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}
