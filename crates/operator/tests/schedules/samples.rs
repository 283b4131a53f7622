//! The objects of a cluster at rest, from the samples that the tests on the real API server use too.

use std::{path::Path, sync::OnceLock};

use serde_json::Value;

/// Where each goes, and what it says.
pub(crate) fn objects() -> &'static [(String, Value)] {
    static OBJECTS: OnceLock<Vec<(String, Value)>> = OnceLock::new();
    OBJECTS.get_or_init(|| {
        let files = ["namespaces", "hyperconverged", "machineconfigs", "machineconfigpools", "machineconfiguration"];
        let objects = files.iter().flat_map(|file| documents(file)).map(|object| (uri(&object), object));
        let status = documents("status").into_iter().map(|object| (format!("{}/status", uri(&object)), object));
        objects.chain(status).collect()
    })
}

fn documents(name: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/samples/third-party");
    let path = folder.join(format!("{name}.yaml"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Plurals are regular here.
fn uri(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let version = text("/apiVersion").unwrap();
    let root = if version.contains('/') { "/apis" } else { "/api" };
    let namespace = text("/metadata/namespace").map_or_else(String::new, |name| format!("/namespaces/{name}"));
    let plural = format!("{}s", text("/kind").unwrap().to_lowercase());
    format!("{root}/{version}{namespace}/{plural}/{}", text("/metadata/name").unwrap())
}
