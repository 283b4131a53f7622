//! The archive by the rules of OCI's image specification, version 1.1: what must be there, and nothing that it does not know. So
//! registries, engines and cosign take it by its digest.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::archives::{Written, hex, parsed};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// The fields of an object: all that are required, and no others than these and the optional ones.
fn fields<'a>(value: &'a Value, required: &[&str], optional: &[&str]) -> &'a Map<String, Value> {
    let object = value.as_object().unwrap_or_else(|| panic!("{value} is no object"));
    for name in required {
        assert!(object.contains_key(*name), "{name} is missing in {value}");
    }
    for name in object.keys() {
        assert!(required.contains(&name.as_str()) || optional.contains(&name.as_str()), "{name} in {value}");
    }
    object
}

fn texts(value: &Value) {
    for (key, text) in value.as_object().into_iter().flatten() {
        assert!(!key.is_empty() && text.is_string(), "{key}: {text}");
    }
}

fn words(value: &Value) {
    assert!(value.as_array().unwrap().iter().all(Value::is_string), "{value}");
}

/// A layout, and the blobs in it that something refers to.
struct Layout {
    files: BTreeMap<String, Vec<u8>>,
    used: BTreeSet<String>,
}

impl Layout {
    /// The blob of a descriptor, which has the size and the digest that the descriptor says.
    fn blob(&mut self, descriptor: &Value, media_type: &str, more: &[&str]) -> Vec<u8> {
        fields(descriptor, &["mediaType", "digest", "size"], more);
        assert_eq!(descriptor["mediaType"], media_type);
        let digits = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        assert!(digits.len() == 64 && digits.bytes().all(is_digit), "{descriptor}");
        let path = format!("blobs/sha256/{digits}");
        let bytes = self.files.get(&path).unwrap_or_else(|| panic!("there is no {path}")).clone();
        assert_eq!(descriptor["size"].as_u64(), Some(bytes.len() as u64), "{descriptor}");
        assert_eq!(hex(&bytes), digits);
        texts(&descriptor["annotations"]);
        self.used.insert(path);
        bytes
    }
}

/// The grammar of `org.opencontainers.image.ref.name`: words with single separators, or two dashes, between slashes.
fn is_reference(name: &str) -> bool {
    let is_component = |component: &str| {
        let words = component.replace("--", "-");
        let mut words = words.split(['-', '.', '_', ':', '@', '+']);
        words.all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    };
    name.split('/').all(is_component)
}

fn check_config(config: &Value, arch: &str, layers: usize) {
    let known = ["created", "author", "config", "history", "variant", "os.version", "os.features"];
    fields(config, &["architecture", "os", "rootfs"], &known);
    assert_eq!((config["architecture"].as_str(), config["os"].as_str()), (Some(arch), Some("linux")));
    config["created"].as_str().unwrap().parse::<Timestamp>().unwrap();
    let known = ["User", "ExposedPorts", "Env", "Entrypoint", "Cmd", "Volumes", "WorkingDir", "Labels", "StopSignal"];
    let execution = fields(&config["config"], &[], &known);
    texts(&execution["Labels"]);
    words(&execution["Entrypoint"]);
    execution.get("Cmd").into_iter().for_each(words);
    let known = ["created", "author", "created_by", "comment", "empty_layer"];
    let history = config["history"].as_array().unwrap();
    for step in history {
        fields(step, &[], &known);
    }
    assert_eq!(history.iter().filter(|step| step["empty_layer"] != true).count(), layers, "one step for each layer");
    assert_eq!(fields(&config["rootfs"], &["type", "diff_ids"], &[])["type"], "layers");
    assert_eq!(config["rootfs"]["diff_ids"].as_array().unwrap().len(), layers);
}

/// A layer that is unpacked over nothing: no whiteouts, and no path that leads out of the image.
fn check_layer(packed: &[u8], diff_id: &Value) -> Vec<String> {
    let mut unpacked = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed), &mut unpacked).unwrap();
    assert_eq!(*diff_id, format!("sha256:{}", hex(&unpacked)));
    let mut names = Vec::new();
    for entry in tar::Archive::new(&*unpacked).entries().unwrap() {
        let entry = entry.unwrap();
        let name = entry.path().unwrap().display().to_string();
        assert!(!name.starts_with(['/', '.']) && !name.contains("..") && !name.contains(".wh."), "{name}");
        assert!(entry.header().entry_type().is_file(), "{name}");
        names.push(name);
    }
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    names
}

fn check(title: &str, arch: &str, args: &[&str], expected: &[&str]) {
    let written = Written::new(title, arch, args);
    let mut layout = Layout { files: written.files(), used: BTreeSet::new() };
    let marker = parsed(&layout.files["oci-layout"]);
    assert_eq!(fields(&marker, &["imageLayoutVersion"], &[])["imageLayoutVersion"], "1.0.0");

    let index = parsed(&layout.files["index.json"]);
    fields(&index, &["schemaVersion", "manifests"], &["mediaType", "annotations", "subject", "artifactType"]);
    assert_eq!((&index["schemaVersion"], &index["mediaType"]), (&2.into(), &INDEX.into()));
    let [descriptor] = index["manifests"].as_array().unwrap().as_slice() else { panic!("{index}") };
    let manifest = parsed(&layout.blob(descriptor, MANIFEST, &["platform", "annotations"]));
    let platform = fields(&descriptor["platform"], &["architecture", "os"], &["variant"]);
    assert_eq!((platform["architecture"].as_str(), platform["os"].as_str()), (Some(arch), Some("linux")));
    let annotations = &descriptor["annotations"];
    assert!(is_reference(annotations["org.opencontainers.image.ref.name"].as_str().unwrap()), "{annotations}");
    assert_eq!(annotations["kind"], "dev.cosignproject.cosign/image", "by this `cosign load` finds the image");

    fields(&manifest, &["schemaVersion", "config", "layers"], &["mediaType", "annotations", "subject", "artifactType"]);
    assert_eq!((&manifest["schemaVersion"], &manifest["mediaType"]), (&2.into(), &MANIFEST.into()));
    let layers = manifest["layers"].as_array().unwrap();
    let config = parsed(&layout.blob(&manifest["config"], CONFIG, &[]));
    check_config(&config, arch, layers.len());
    let mut names = Vec::new();
    for (layer, diff_id) in layers.iter().zip(config["rootfs"]["diff_ids"].as_array().unwrap()) {
        names.extend(check_layer(&layout.blob(layer, LAYER, &[]), diff_id));
    }
    assert_eq!(names, expected);

    // `manifest.json` is for docker; readers of OCI's layout pass over it.
    let mut known: BTreeSet<String> = ["oci-layout", "index.json", "manifest.json"].map(str::to_owned).into();
    known.append(&mut layout.used);
    assert_eq!(layout.files.into_keys().collect::<BTreeSet<_>>(), known);
}

#[test]
fn archives_are_layouts_by_the_specification() {
    check("virt-advisor-operator", "amd64", &[], &["virt-advisor"]);
    check("virt-advisor-operator", "arm64", &["--image", "localhost:5000/it"], &["virt-advisor"]);
    check("rebalance-lab", "amd64", &["--lab"], &["descheduler", "rebalance-lab"]);
}

#[test]
fn references_follow_the_grammar() {
    for name in ["v1", "me/it:v1", "localhost:5000/it", "a--b/c_d.e+f@x"] {
        assert!(is_reference(name), "{name}");
    }
    for name in ["", "/", "a//b", "a..b", "-a", "a:", "a b", "a___b"] {
        assert!(!is_reference(name), "{name}");
    }
}
