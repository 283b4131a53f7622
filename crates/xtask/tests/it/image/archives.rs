//! The image as a file, with a small file in the place of the program.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::Command,
};

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::{dummy, xtask};
use crate::commands::{printed, root};

const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// What one run has written and printed.
pub(super) struct Written {
    folder: TempDir,
    told: String,
    name: String,
}

impl Written {
    pub(super) fn new(title: &str, arch: &str, args: &[&str]) -> Written {
        let folder = tempfile::tempdir().unwrap();
        let (program, output) = (dummy(folder.path()), folder.path().join("out"));
        let all = ["image-archive", "--program", &program, "--arch", arch, "--output", output.to_str().unwrap()];
        let mut command = xtask(&folder.path().join("target"), &[&all[..], args].concat());
        command.env("TEST_ASSET_DESCHEDULER", go_program(folder.path()));
        let told = printed(&command.output().unwrap());
        Written { folder, told, name: format!("{title}-{VERSION}-linux-{arch}") }
    }

    fn path(&self, ending: &str) -> PathBuf {
        self.folder.path().join("out").join(format!("{}.{ending}", self.name))
    }

    fn json(&self, ending: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path(ending)).unwrap()).unwrap()
    }

    /// The files in the archive by name.
    pub(super) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let archive = fs::read(self.path("tar")).unwrap();
        let mut files = BTreeMap::new();
        for entry in tar::Archive::new(&*archive).entries().unwrap() {
            let (mut entry, mut bytes) = (entry.unwrap(), Vec::new());
            entry.read_to_end(&mut bytes).unwrap();
            files.insert(entry.path().unwrap().display().to_string(), bytes);
        }
        files
    }
}

/// A file with nothing but what Go writes into programs about their modules.
fn go_program(folder: &Path) -> PathBuf {
    let mark = "0123456789abcdef";
    let modules = format!("{mark}path\tx\ndep\tsigs.k8s.io/descheduler\tv0.36.0\th1:x=\n{mark}");
    let mut bytes = b"\xff Go buildinf:\x08\x02".to_vec();
    bytes.resize(32, 0);
    bytes.push(8);
    bytes.extend(b"go1.26.1");
    bytes.push(u8::try_from(modules.len()).unwrap());
    bytes.extend(modules.as_bytes());
    assert!(modules.len() < 0x80);
    let file = folder.join("descheduler");
    fs::write(&file, bytes).unwrap();
    file
}

pub(super) fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

pub(super) fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn the_same_tree_gives_the_same_bytes_and_another_program_another_digest() {
    let read = |written: &Written| ["tar", "cdx.json", "provenance.json"].map(|it| fs::read(written.path(it)).unwrap());
    let args = ["--image", "me/it:v1"];
    let (first, second) =
        (Written::new("virt-advisor-operator", "amd64", &args), Written::new("virt-advisor-operator", "amd64", &args));
    assert!(read(&first) == read(&second));
    let lab = Written::new("rebalance-lab", "amd64", &["--lab", "--image", "me/it:v1"]);
    assert_ne!(read(&first)[0], read(&lab)[0]);
}

#[test]
fn every_blob_of_the_archive_has_the_digest_and_the_size_that_others_name() {
    let written = Written::new("virt-advisor-operator", "arm64", &["--image", "me/it:v1"]);
    let files = written.files();
    assert_eq!(files["oci-layout"], br#"{"imageLayoutVersion":"1.0.0"}"#);
    for (name, bytes) in &files {
        if let Some(digits) = name.strip_prefix("blobs/sha256/") {
            assert_eq!(hex(bytes), digits);
        }
    }
    let blob = |descriptor: &Value| {
        let digits = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let bytes = &files[&format!("blobs/sha256/{digits}")];
        assert_eq!(descriptor["size"], bytes.len(), "{descriptor}");
        bytes
    };
    let index = parsed(&files["index.json"]);
    let descriptor = &index["manifests"][0];
    assert_eq!(descriptor["platform"], json!({"architecture": "arm64", "os": "linux"}));
    for name in ["io.containerd.image.name", "org.opencontainers.image.ref.name"] {
        assert_eq!(descriptor["annotations"][name], "me/it:v1");
    }
    let manifest = parsed(blob(descriptor));
    assert_eq!(manifest["mediaType"], descriptor["mediaType"]);
    let (config, layer) = (parsed(blob(&manifest["config"])), blob(&manifest["layers"][0]));
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&**layer).read_to_end(&mut unpacked).unwrap();
    assert_eq!(config["rootfs"]["diff_ids"], json!([format!("sha256:{}", hex(&unpacked))]));
    assert_eq!((&config["architecture"], &config["os"]), (&json!("arm64"), &json!("linux")));
    // For `docker load`.
    let docker = &parsed(&files["manifest.json"])[0];
    assert_eq!(docker["RepoTags"], json!(["me/it:v1"]));
    for (path, digest) in
        [(&docker["Config"], &manifest["config"]["digest"]), (&docker["Layers"][0], &manifest["layers"][0]["digest"])]
    {
        let digits = digest.as_str().unwrap().trim_start_matches("sha256:");
        assert_eq!(path, &json!(format!("blobs/sha256/{digits}")));
    }
    assert_eq!(files.len(), 6, "{:?}", files.keys());
    assert!(written.told.contains(descriptor["digest"].as_str().unwrap()), "{}", written.told);
    assert!(written.told.contains(" to pull, ") && written.told.contains(" on a node"), "{}", written.told);
}

fn git(args: &[&str]) -> String {
    printed(&Command::new("git").args(args).current_dir(root()).output().unwrap()).trim().to_owned()
}

#[test]
fn the_image_says_what_it_is_and_runs_as_nobody() {
    let written = Written::new("virt-advisor-operator", "amd64", &[]);
    let mut configs = written.files().into_values().filter_map(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let config = configs.find(|document| document["rootfs"].is_object()).unwrap();
    assert_eq!(config["created"], "2023-11-14T22:13:20Z");
    let execution = &config["config"];
    assert_eq!(execution["User"], "65532:65532");
    assert_eq!((&execution["Entrypoint"], &execution["Cmd"]), (&json!(["/virt-advisor"]), &json!(["operator"])));
    let label = |name: &str| execution["Labels"][format!("org.opencontainers.image.{name}")].clone();
    assert_eq!((label("title"), label("version")), (json!("virt-advisor-operator"), json!(VERSION)));
    assert_eq!((label("licenses"), label("created")), (json!("Apache-2.0"), json!("2023-11-14T22:13:20Z")));
    let is_modified = !git(&["status", "--porcelain", "--untracked-files=no"]).is_empty();
    let mark = if is_modified { "-modified" } else { "" };
    assert_eq!(label("revision"), json!(git(&["rev-parse", "HEAD"]) + mark));
}

#[test]
fn provenance_names_the_image_by_its_digest_and_what_it_was_made_of() {
    let written = Written::new("rebalance-lab", "amd64", &["--lab", "--image", "me/it:v1"]);
    let index = parsed(&written.files()["index.json"]);
    let digest = index["manifests"][0]["digest"].as_str().unwrap().trim_start_matches("sha256:");
    let statement = written.json("provenance.json");
    assert_eq!(statement["subject"], json!([{"name": "me/it:v1", "digest": {"sha256": digest}}]));
    let definition = &statement["predicate"]["buildDefinition"];
    let materials = definition["resolvedDependencies"].as_array().unwrap();
    assert_eq!(materials[0]["digest"]["gitCommit"], git(&["rev-parse", "HEAD"]));
    for (material, path) in
        materials[1..].iter().zip(["Cargo.lock", "tools/descheduler/go.mod", "tools/descheduler/go.sum"])
    {
        let digest = hex(&fs::read(root().join(path)).unwrap());
        assert_eq!(material, &json!({"name": path, "digest": {"sha256": digest}}));
    }
    let byproducts = statement["predicate"]["runDetails"]["byproducts"].as_array().unwrap();
    let bill = byproducts.last().unwrap();
    assert_eq!(bill["digest"]["sha256"], hex(&fs::read(written.path("cdx.json")).unwrap()));
    assert_eq!(statement["predicate"]["runDetails"]["builder"]["version"]["go"], "1.26.1");
}

/// What Cargo compiles into a program, by its own graph of compilations.
fn compiled(package: &str, features: &[&str], target: &str) -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--unit-graph", "-Z", "unstable-options", "--locked", "--offline", "--package", package]);
    command
        .args(features)
        .args(["--target", target])
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_DIR", folder.path());
    let graph: Value = serde_json::from_str(&printed(&command.current_dir(root()).output().unwrap())).unwrap();
    let units = graph["units"].as_array().unwrap().iter().filter(|unit| {
        let is_script = unit["target"]["kind"].as_array().unwrap().contains(&json!("custom-build"));
        unit["mode"] == "build" && unit["platform"] == target && !is_script
    });
    // As `registry+https://…#name@1.0.0`, or `path+file:///…/name#1.0.0`.
    let purl = |id: &str| {
        let (place, version) = id.rsplit_once('#').unwrap();
        let folder = place.rsplit('/').next().unwrap();
        let (name, version) = version.split_once('@').unwrap_or((folder, version));
        format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
    };
    units.map(|unit| purl(unit["pkg_id"].as_str().unwrap())).collect()
}

#[test]
fn the_bill_of_materials_lists_exactly_what_cargo_compiles_into_the_program() {
    let (amd64, arm64) = (("amd64", "x86_64-unknown-linux-gnu"), ("arm64", "aarch64-unknown-linux-gnu"));
    // The image of the lab has a descheduler, which Go would have to build for another architecture first.
    let own = if cfg!(target_arch = "aarch64") { arm64 } else { amd64 };
    let operator = ("virt-advisor", "virt-advisor-operator", &[][..], &["--no-default-features"][..]);
    let lab = ("rebalance-lab", "rebalance-lab", &["--lab"][..], &[][..]);
    for ((package, title, args, features), (arch, target)) in [(operator, amd64), (operator, arm64), (lab, own)] {
        let bill = Written::new(title, arch, args).json("cdx.json");
        let components = bill["components"].as_array().unwrap();
        let purls = components.iter().filter_map(|component| component["purl"].as_str());
        let listed: BTreeSet<_> = purls.filter(|purl| purl.starts_with("pkg:cargo/")).map(str::to_owned).collect();
        assert_eq!(listed, compiled(package, features, target), "{package} for {arch}");
    }
}

#[test]
fn the_bill_of_materials_of_the_lab_has_the_modules_of_the_descheduler() {
    let bill = Written::new("rebalance-lab", "amd64", &["--lab"]).json("cdx.json");
    let components = bill["components"].as_array().unwrap();
    let has = |purl: &str| components.iter().any(|component| component["purl"] == purl);
    assert!(has("pkg:golang/sigs.k8s.io/descheduler@v0.36.0") && has("pkg:golang/stdlib@1.26.1"));
    let name = bill["metadata"]["component"]["name"].as_str().unwrap();
    assert_eq!(name, "kubevirt.io/rebalance-lab");
}
