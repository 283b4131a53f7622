//! Files of this repository that tests read.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The root folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The documents of a YAML file.
pub fn documents(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The objects of a file in `config/samples/third-party`.
pub fn sample_documents(name: &str) -> Vec<Value> {
    documents(&root().join("config/samples/third-party").join(format!("{name}.yaml")))
}

/// The objects of a file in `config/crd/third-party`.
pub fn third_party_definitions(file: &str) -> Vec<Value> {
    documents(&root().join("config/crd/third-party").join(file))
}

/// The objects of a file in `config/rbac`.
pub fn rbac_documents(file: &str) -> Vec<Value> {
    documents(&root().join("config/rbac").join(file))
}
