//! The verbs that write: what they do, and when they are refused.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::{
    Answer, Request, Target,
    kinds::named,
    ownership::{Writer, apply, merge, own_status, update},
    rules,
    store::{Key, Store},
};

const ELSEWHERE: &str = "the object has been modified; please apply your changes to the latest version and try again";

impl Store {
    pub(super) fn write(&mut self, request: &Request, target: &Target, time: &str) -> Answer {
        let mut target = target.clone();
        if request.method == Method::POST {
            target.name = request.body["metadata"]["name"].as_str().map(str::to_owned);
        }
        let live = self.get(&target.key()).cloned();
        let is_apply = request.content.contains("apply-patch") && !target.is_status;
        if let Some(refusal) = moved(request, &target, live.as_deref()).filter(|_| !is_apply) {
            return refusal;
        }
        let version = target.resource.api_version();
        let writer = Writer { manager: request.query("fieldManager").unwrap_or("unknown"), version: &version, time };
        match (request.method.as_str(), live) {
            ("DELETE", Some(live)) => self.delete(request, &target, &live),
            ("POST", Some(_)) => {
                let message = format!("{} already exists", target.text());
                Answer::failure(409, "AlreadyExists", message, target.details())
            }
            ("POST", None) => self.create(request, &target, request.body.clone(), writer),
            ("PATCH", live) if is_apply => self.apply(request, &target, live.as_deref(), writer),
            (_, None) => target.not_found(),
            ("PATCH", Some(live)) if request.content.contains("json-patch") => match patched(&live, &request.body) {
                Some(new) => self.replace(request, &target, &live, new, writer),
                None => {
                    let message = "the server rejected our request due to an error in our request".to_owned();
                    Answer::failure(422, "Invalid", message, json!({}))
                }
            },
            ("PATCH", Some(live)) if request.content.contains("apply-patch") => {
                let new = merge(Some(&live), &request.body, &target.resource.shape);
                self.replace(request, &target, &live, new, writer)
            }
            ("PATCH", Some(live)) => {
                let mut new = (*live).clone();
                merge_patch(&mut new, &request.body);
                self.replace(request, &target, &live, new, writer)
            }
            ("PUT", Some(live)) => self.replace(request, &target, &live, request.body.clone(), writer),
            (method, _) => {
                Answer::failure(405, "MethodNotAllowed", format!("{method} is not part of the model"), json!({}))
            }
        }
    }

    fn apply(&mut self, request: &Request, target: &Target, live: Option<&Value>, writer: Writer<'_>) -> Answer {
        let force = request.query("force").is_some();
        match apply(live, &request.body, &target.resource.shape, writer, force) {
            Err(conflicts) => {
                let causes: Vec<Value> = conflicts
                    .iter()
                    .map(|conflict| {
                        let message = format!("conflict with {:?} using {}", conflict.manager, writer.version);
                        json!({"reason": "FieldManagerConflict", "message": message, "field": conflict.field})
                    })
                    .collect();
                let message = format!("Apply failed with {} conflicts", causes.len());
                Answer::failure(409, "Conflict", message, json!({"causes": causes}))
            }
            // Conflicts of managers are checked before the resource version.
            Ok(new) => match (moved(request, target, live), live) {
                (Some(refusal), _) => refusal,
                (None, Some(live)) => self.finish(request, target, live, new),
                (None, None) => self.store_new(request, target, new, writer.time),
            },
        }
    }

    fn create(&mut self, request: &Request, target: &Target, mut new: Value, writer: Writer<'_>) -> Answer {
        if target.resource.has_status {
            new.as_object_mut().map(|members| members.remove("status"));
        }
        update(None, &mut new, &target.resource.shape, writer);
        self.store_new(request, target, new, writer.time)
    }

    fn store_new(&mut self, request: &Request, target: &Target, mut new: Value, time: &str) -> Answer {
        if target.resource.namespaced && self.get(&Key::new(named("namespaces"), "", &target.namespace)).is_none() {
            let message = format!("namespaces {:?} not found", target.namespace);
            return Answer::failure(404, "NotFound", message, json!({"name": target.namespace, "kind": "namespaces"}));
        }
        if let Some(why) = rules::broken(target.resource, None, &new) {
            return target.invalid(why);
        }
        let uid = self.new_uid();
        let metadata = &mut new["metadata"];
        metadata["uid"] = uid.into();
        metadata["creationTimestamp"] = time.into();
        if target.resource.counts_generations {
            metadata["generation"] = 1.into();
        }
        if request.is_dry_run() {
            metadata.as_object_mut().map(|members| members.remove("resourceVersion"));
            return Answer { code: 201, body: new.into() };
        }
        Answer { code: 201, body: self.put(target.key(), new) }
    }

    /// Replaces an object without its status, or the status only.
    fn replace(
        &mut self,
        request: &Request,
        target: &Target,
        live: &Arc<Value>,
        mut new: Value,
        writer: Writer<'_>,
    ) -> Answer {
        if target.is_status {
            let mut whole = (**live).clone();
            match new.get_mut("status") {
                Some(status) => whole["status"] = status.take(),
                None => drop(whole.as_object_mut().map(|members| members.remove("status"))),
            }
            if whole.get("status") != live.get("status") {
                own_status(&mut whole, writer);
            }
            return self.finish(request, target, live, whole);
        }
        for field in ["uid", "creationTimestamp", "generation"] {
            if let Some(value) = live["metadata"].get(field) {
                new["metadata"][field] = value.clone();
            }
        }
        if target.resource.has_status {
            match live.get("status") {
                Some(status) => new["status"] = status.clone(),
                None => drop(new.as_object_mut().map(|members| members.remove("status"))),
            }
        }
        update(Some(live), &mut new, &target.resource.shape, writer);
        self.finish(request, target, live, new)
    }

    fn finish(&mut self, request: &Request, target: &Target, live: &Value, mut new: Value) -> Answer {
        new["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
        if is_same(&new, live, &["metadata"]) && timeless(&new) == timeless(live) {
            return Answer::ok(live.clone());
        }
        if let Some(why) = rules::broken(target.resource, Some(live), &new) {
            return target.invalid(why);
        }
        let insubstantial: &[&str] = if target.resource.has_status { &["metadata", "status"] } else { &["metadata"] };
        if target.resource.counts_generations && !is_same(&new, live, insubstantial) {
            let generation = live["metadata"]["generation"].as_i64().unwrap_or_default();
            new["metadata"]["generation"] = (generation + 1).into();
        }
        match request.is_dry_run() {
            true => Answer::ok(new),
            false => Answer::ok(self.put(target.key(), new)),
        }
    }

    fn delete(&mut self, request: &Request, target: &Target, live: &Value) -> Answer {
        let mut details = target.details();
        details["uid"] = live["metadata"]["uid"].clone();
        if !request.is_dry_run() {
            self.remove_with_dependents(target, live);
        }
        Answer::ok(
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}),
        )
    }

    /// Deleting a definition deletes all objects of its kind.
    fn remove_with_dependents(&mut self, target: &Target, live: &Value) {
        if target.resource.plural == "customresourcedefinitions" {
            let plural = live["spec"]["names"]["plural"].as_str().unwrap_or_default();
            let dependents: Vec<Key> = self.list(plural).map(|(key, _)| key.clone()).collect();
            dependents.iter().for_each(|key| drop(self.remove(key)));
        }
        self.remove(&target.key());
    }
}

/// Whether the preconditions of a request name another uid or version than the stored ones.
fn moved(request: &Request, target: &Target, live: Option<&Value>) -> Option<Answer> {
    let named =
        if request.method == Method::DELETE { &request.body["preconditions"] } else { &request.body["metadata"] };
    let is_apply = request.content.contains("apply-patch");
    let (uid, version) = (named["uid"].as_str(), named["resourceVersion"].as_str());
    match live {
        None if request.method == Method::DELETE => Some(target.not_found()),
        None => (is_apply && uid.is_some()).then(|| target.moved("Precondition failed: UID in precondition")),
        Some(live) => {
            let differs =
                |name: &str, wanted: Option<&str>| wanted.is_some_and(|wanted| live["metadata"][name] != wanted);
            if request.method == Method::POST {
                return None;
            }
            let other = differs("uid", uid);
            match request.method == Method::DELETE {
                true if other || differs("resourceVersion", version) => {
                    let mut refusal = target.moved("Precondition failed");
                    Arc::make_mut(&mut refusal.body)["details"]["kind"] = target.resource.kind.as_str().into();
                    Some(refusal)
                }
                false if differs("resourceVersion", version) => Some(target.moved(ELSEWHERE)),
                false if other => Some(target.invalid("metadata.uid: field is immutable")),
                _ => None,
            }
        }
    }
}

/// Whether two objects are the same except for these members.
fn is_same(a: &Value, b: &Value, but_for: &[&str]) -> bool {
    fn rest<'a>(object: &'a Value, but_for: &'a [&str]) -> impl Iterator<Item = (&'a String, &'a Value)> {
        object.as_object().into_iter().flatten().filter(|(name, _)| !but_for.contains(&name.as_str()))
    }
    rest(a, but_for).eq(rest(b, but_for))
}

/// The metadata without the times of managed fields.
fn timeless(object: &Value) -> Value {
    let mut metadata = object["metadata"].clone();
    let entries = metadata.get_mut("managedFields").and_then(Value::as_array_mut);
    entries.into_iter().flatten().for_each(|entry| drop(entry["time"].take()));
    metadata
}

pub(crate) fn merge_patch(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (name, value) in patch {
        if value.is_null() {
            into.as_object_mut().map(|members| members.remove(name));
        } else {
            merge_patch(&mut into[name], value);
        }
    }
}

/// Applies a JSON patch of tests, removals and replacements. None if a test fails or a path is missing.
fn patched(live: &Value, patch: &Value) -> Option<Value> {
    let mut new = live.clone();
    for step in patch.as_array()? {
        let path = step["path"].as_str()?;
        match step["op"].as_str()? {
            "test" if new.pointer(path)? == &step["value"] => {}
            "remove" => {
                let (parent, name) = path.rsplit_once('/')?;
                match new.pointer_mut(parent)? {
                    Value::Object(members) => drop(members.remove(&name.replace("~1", "/").replace("~0", "~"))?),
                    Value::Array(entries) => {
                        let position = name.parse().ok().filter(|position| *position < entries.len())?;
                        entries.remove(position);
                    }
                    _ => return None,
                }
            }
            "replace" => *new.pointer_mut(path)? = step["value"].clone(),
            _ => return None,
        }
    }
    Some(new)
}
