//! What the stand-in writes to the API server.

use std::fmt;

use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions},
};
use kube_io::{ObjectKey, RequestError};
use serde_json::{Value, json};

use super::{
    FIELD_MANAGER,
    cluster::{Cluster, Kind},
};
use crate::time::Time;

/// One write, with what it is for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    pub(super) doing: String,
    pub(super) kind: Kind,
    pub(super) key: ObjectKey,
    pub(super) write: Write,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Write {
    Create(Value),
    /// Merge patches of an object that must still have the known version.
    Change(Value),
    ChangeStatus(Value),
    /// Of the object with this UID.
    Delete(String),
    /// Lets a pod go that a finalizer keeps, at once.
    Release,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.doing)
    }
}

impl Request {
    /// Sends it, and keeps the answer.
    pub(super) async fn send(&self, client: &Client, time: &Time, cluster: &mut Cluster) -> Result<(), RequestError> {
        let Request { kind, key, .. } = self;
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &key.namespace, &kind.resource());
        let doing = || self.to_string();
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        let versioned = |patch: &Value, cluster: &Cluster| {
            let mut patch = patch.clone();
            patch["metadata"]["resourceVersion"] = json!(cluster.version(*kind, key));
            Patch::Merge(patch)
        };
        let answer = match &self.write {
            Write::Create(object) => {
                let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
                let object = serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError);
                time.write(doing(), async { api.create(&params, &object?).await }).await
            }
            Write::Change(patch) => {
                time.write(doing(), api.patch(&key.name, &params, &versioned(patch, cluster))).await
            }
            Write::ChangeStatus(patch) => {
                time.write(doing(), api.patch_status(&key.name, &params, &versioned(patch, cluster))).await
            }
            Write::Delete(uid) => {
                let preconditions = Preconditions { uid: Some(uid.clone()), resource_version: None };
                let params = DeleteParams::default().preconditions(preconditions);
                gone_or(time.write(doing(), api.delete(&key.name, &params)).await)?;
                // The watch tells when it is gone: until then there may be older events of it.
                cluster.objects_mut(*kind).mark_deleted(key, time.now());
                return Ok(());
            }
            Write::Release => {
                let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                gone_or(time.write(doing(), api.patch(&key.name, &params, &none)).await)?;
                gone_or(time.write(doing(), api.delete(&key.name, &DeleteParams::default().grace_period(0))).await)?;
                cluster.objects_mut(*kind).remove(key);
                return Ok(());
            }
        };
        cluster.objects_mut(*kind).put(answer?);
        Ok(())
    }
}

fn gone_or<T>(answer: Result<T, RequestError>) -> Result<(), RequestError> {
    match answer {
        Err(error) if !error.class.is_absent() => Err(error),
        _ => Ok(()),
    }
}
