//! Watches of commands that go on: on whole objects, with the rights of the caller.

use advisor::Kind;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::watcher,
};
use kube_io::{Backoff, BackoffPolicy, Clock, ResilientWatch};

use crate::reader::Reader;

/// A watch on all objects of a kind, or on the one of this name.
pub(crate) fn watch(reader: &Reader, kind: &Kind, name: Option<&str>) -> ResilientWatch<DynamicObject> {
    let config = watcher::Config::default();
    let config = match name {
        Some(name) => config.fields(&format!("metadata.name={name}")),
        None => config,
    };
    let gvk = GroupVersionKind::gvk(kind.group, kind.first_version(), kind.kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural);
    let api = Api::all_with(reader.api_server().watch_client().clone(), &resource);
    ResilientWatch::new(api, config, Backoff::new(BackoffPolicy::WATCHES, Clock::default()))
}
