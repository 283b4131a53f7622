//! The files under `config/` that users apply: good ones are good, and the one that is not says why.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use crate::kubectl::Kubectl;

/// Files of others' kinds, which this server does not have.
const FOREIGN: &[&str] = &["mock_baseline_resources.yaml"];

/// What the server says about each file in `rejected`.
const REJECTED: &[(&str, &str)] = &[(
    "ratio_without_swap.yaml",
    "The VirtPlatformConfig \"virt-higher-density\" is invalid: spec.options.virtHigherDensity.memoryToRequestRatio: Invalid value: memoryToRequestRatio > 120 requires enableSwap=true",
)];

fn config(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config").join(folder)
}

/// The YAML files of a folder, by name.
fn files(folder: &str) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(config(folder)).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    let mut files: Vec<_> = files.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path)).collect();
    files.sort();
    files
}

async fn apply(flag: &str, path: &Path) -> Output {
    let args = ["apply", "--dry-run=server", "--validate=strict", flag, path.to_str().unwrap()];
    Kubectl::shared().await.run(&args).await
}

/// W47 (unusable roles and samples), D25 (quick start as printed): whatever a guide says to apply can be applied.
#[tokio::test]
async fn every_sample_is_accepted() {
    let mut refused = String::new();
    let samples = files("samples").into_iter().filter(|(name, _)| !FOREIGN.contains(&name.as_str()));
    let (kustomizations, samples): (Vec<_>, Vec<_>) = samples.partition(|(name, _)| name == "kustomization.yaml");
    assert!(samples.len() >= 6 && kustomizations.len() == 1, "{samples:?}");
    for (name, path) in samples {
        let output = apply("-f", &path).await;
        if !output.status.success() {
            refused += &format!("{name}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    assert!(refused.is_empty(), "{refused}");
}

/// W47 (unusable roles and samples), D25 (quick start as printed): `kubectl apply -k config/samples/`.
#[tokio::test]
async fn every_kustomization_is_accepted() {
    for folder in ["samples", "crd"] {
        let output = apply("-k", &config(folder)).await;
        assert!(output.status.success(), "{folder}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[tokio::test]
async fn every_rejected_sample_is_refused_and_says_why() {
    let files = files("samples/rejected");
    let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
    let expected: Vec<_> = REJECTED.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, expected, "each file needs the message of the server in this table");
    for ((name, path), (_, message)) in files.iter().zip(REJECTED) {
        let output = apply("-f", path).await;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(message), "{name}: {said}");
    }
}
