//! The configurations themselves: where they are, and the watch on them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    VirtPlatformConfig,
    names::{ADVISOR_GROUP, VERSION},
};
use kube::{
    Api, Client, ResourceExt,
    core::DeserializeGuard,
    runtime::watcher::{self, Event},
};

use crate::{
    Readiness, Surroundings,
    inbox::{Inbox, Root},
    malformed::Malformed,
    persistent::{Heard, Persistent},
};

pub(crate) fn collection(query: &str) -> String {
    format!("/apis/{ADVISOR_GROUP}/{VERSION}/virtplatformconfigs{query}")
}

pub(crate) fn object(name: &str, rest: &str) -> String {
    collection(&format!("/{name}{rest}"))
}

/// Watches all configurations and tells each steward about its own, for ever. Those that cannot be read are `malformed`.
pub(crate) async fn watch(
    client: Client,
    stewards: BTreeMap<&'static str, Arc<Inbox>>,
    malformed: Arc<Malformed>,
    readiness: Readiness,
    surroundings: Surroundings,
) {
    let api: Api<DeserializeGuard<VirtPlatformConfig>> = Api::all(client);
    let mut watch = Persistent::new(api, watcher::Config::default(), surroundings);
    let mut listed: BTreeSet<String> = BTreeSet::new();
    loop {
        let put = |name: &str, root: Root| {
            malformed.forget(name);
            if let Some(inbox) = stewards.get(name) {
                inbox.put(|mail| mail.root = Some(root));
            }
        };
        match watch.next().await {
            Heard::Event(Event::Init) => listed.clear(),
            Heard::Event(Event::Apply(found) | Event::InitApply(found)) => {
                listed.insert(found.name_any());
                match found.0 {
                    Ok(config) => put(&config.name_any(), Root::Present(Arc::new(config))),
                    Err(invalid) => malformed.put(invalid),
                }
            }
            Heard::Event(Event::InitDone) => {
                readiness.set(true);
                stewards.keys().filter(|name| !listed.contains(**name)).for_each(|name| put(name, Root::Absent));
                malformed.retain(&listed);
            }
            Heard::Event(Event::Delete(found)) => put(&found.name_any(), Root::Absent),
            // Not installed, or not for us. There is nothing to do until it is.
            Heard::NotServed | Heard::Forbidden(_) => {}
        }
    }
}
