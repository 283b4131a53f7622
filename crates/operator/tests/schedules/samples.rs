//! The sample objects of third parties, which the tests on the real API server use too.

use std::sync::OnceLock;

use serde_json::Value;
use testkit::{files::sample_documents, platform::path};

/// The objects with their paths; those with a path that ends in `/status` are status updates.
pub(crate) fn objects() -> &'static [(String, Value)] {
    static OBJECTS: OnceLock<Vec<(String, Value)>> = OnceLock::new();
    OBJECTS.get_or_init(|| {
        let files = ["namespaces", "hyperconverged", "machineconfigs", "machineconfigpools", "machineconfiguration"];
        let objects = files.iter().flat_map(|file| sample_documents(file)).map(|object| (path(&object), object));
        let status = sample_documents("status").into_iter().map(|object| (format!("{}/status", path(&object)), object));
        objects.chain(status).collect()
    })
}
