use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::image::{cargo_packages::Package, go_build_info::GoModule};

const DIGITS: &str = "01435edc8021b1d968bba2a29863407edac6ec544a7003b536b92c932644514f";

fn id(name: &str, version: &str) -> PackageId {
    PackageId { name: name.to_owned(), version: version.to_owned() }
}

fn packages() -> Packages {
    let library = |checksum: &str, uses: &[PackageId]| Package {
        license: Some("MIT OR Apache-2.0".to_owned()),
        checksum: Some(checksum.repeat(64)),
        dependencies: uses.iter().cloned().collect(),
    };
    let top = Package { checksum: None, ..library("", &[id("a", "1.0.0"), id("b", "2.0.0+x")]) };
    Packages::from([
        (id("rebalance-lab", "0.1.0"), top),
        (id("a", "1.0.0"), library("a", &[id("b", "2.0.0+x")])),
        (id("b", "2.0.0+x"), library("b", &[])),
    ])
}

fn bill() -> Value {
    let subject =
        Subject { name: "kubevirt.io/rebalance-lab", version: "v0.1.0", sha256: DIGITS, time: "2023-11-14T22:13:20Z" };
    let runtime = Runtime { rust: Some("1.95.0".to_owned()), glibc: Some("2.36".to_owned()) };
    let (root, packages) = (id("rebalance-lab", "0.1.0"), packages());
    let ours = RustProgram { root: &root, packages: &packages, runtime: &runtime, sha256: "c".repeat(64) };
    let modules =
        vec![GoModule { path: "github.com/Masterminds/semver".to_owned(), version: "v1.5.0+incompatible".to_owned() }];
    let build = GoBuildInfo { go: "1.26.1".to_owned(), modules };
    let other = GoProgram { name: "descheduler", version: "v0.36.0", sha256: "d".repeat(64), build };
    serde_json::from_str(&document(&subject, &ours, &[other]).unwrap()).unwrap()
}

fn texts<'a>(values: &'a Value, field: &str) -> Vec<&'a str> {
    values.as_array().unwrap().iter().map(|value| value[field].as_str().unwrap()).collect()
}

fn uses<'a>(bill: &'a Value, name: &str) -> Vec<&'a str> {
    let all = bill["dependencies"].as_array().unwrap();
    let found = all.iter().find(|dependency| dependency["ref"] == name).unwrap_or_else(|| panic!("no {name}"));
    found["dependsOn"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

#[test]
fn everything_in_the_files_of_the_image_is_listed_with_what_uses_it() {
    let bill = bill();
    assert_eq!(
        texts(&bill["components"], "bom-ref"),
        [
            "file:/descheduler",
            "pkg:cargo/a@1.0.0",
            "pkg:cargo/b@2.0.0%2Bx",
            "pkg:cargo/rebalance-lab@0.1.0",
            "pkg:generic/glibc@2.36",
            "pkg:generic/rust-std@1.95.0",
            "pkg:golang/github.com/masterminds/semver@v1.5.0%2Bincompatible",
            "pkg:golang/stdlib@1.26.1",
        ]
    );
    let image = bill["metadata"]["component"]["bom-ref"].as_str().unwrap();
    assert_eq!(image, format!("pkg:oci/rebalance-lab@sha256%3A{DIGITS}"));
    assert_eq!(uses(&bill, image), ["file:/descheduler", "pkg:cargo/rebalance-lab@0.1.0"]);
    assert_eq!(
        uses(&bill, "pkg:cargo/rebalance-lab@0.1.0"),
        ["pkg:cargo/a@1.0.0", "pkg:cargo/b@2.0.0%2Bx", "pkg:generic/glibc@2.36", "pkg:generic/rust-std@1.95.0"]
    );
    assert_eq!(uses(&bill, "pkg:cargo/a@1.0.0"), ["pkg:cargo/b@2.0.0%2Bx"]);
    assert_eq!(uses(&bill, "file:/descheduler").len(), 2);
    let first = &bill["components"][1];
    assert_eq!(first["hashes"][0]["content"], "a".repeat(64));
    assert_eq!(first["licenses"][0]["expression"], "MIT OR Apache-2.0");
}

/// The rules of the schema for what we write.
#[test]
fn the_document_keeps_the_rules_of_its_format() {
    let bill = bill();
    assert_eq!(
        (&bill["bomFormat"], &bill["specVersion"], &bill["version"]),
        (&"CycloneDX".into(), &"1.6".into(), &1.into())
    );
    let serial = bill["serialNumber"].as_str().unwrap().strip_prefix("urn:uuid:").unwrap();
    let parts: Vec<usize> = serial.split('-').map(str::len).collect();
    assert_eq!(parts, [8, 4, 4, 4, 12]);
    assert!(serial.chars().all(|c| c == '-' || (c.is_ascii_hexdigit() && !c.is_ascii_uppercase())), "{serial}");

    let mut names = BTreeSet::from([bill["metadata"]["component"]["bom-ref"].as_str().unwrap()]);
    for component in bill["components"].as_array().unwrap() {
        let kind = component["type"].as_str().unwrap();
        assert!(["application", "container", "library"].contains(&kind), "{kind}");
        assert!(names.insert(component["bom-ref"].as_str().unwrap()), "{component} is there twice");
        assert!(!component["name"].as_str().unwrap().is_empty());
        for hash in component["hashes"].as_array().into_iter().flatten() {
            let content = hash["content"].as_str().unwrap();
            assert!(hash["alg"] == "SHA-256" && content.len() == 64, "{hash}");
        }
        let licenses = component["licenses"].as_array().map_or(0, Vec::len);
        assert!(licenses <= 1, "an expression is alone");
    }
    let used_by: Vec<&str> = texts(&bill["dependencies"], "ref");
    assert_eq!(used_by.iter().copied().collect::<BTreeSet<_>>(), names, "one entry for each component");
    assert_eq!(used_by.len(), names.len());
    for name in used_by.iter().flat_map(|name| uses(&bill, name)) {
        assert!(names.contains(name), "{name} is not described");
    }
}

#[test]
fn the_same_image_has_the_same_bill() {
    assert_eq!(bill(), bill());
}
