//! The format CycloneDX 1.6, as far as we write it.

use std::collections::BTreeSet;

use serde::Serialize;

const SCHEMA: &str = "http://cyclonedx.org/schema/bom-1.6.schema.json";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Bom {
    #[serde(rename = "$schema")]
    schema: &'static str,
    bom_format: &'static str,
    spec_version: &'static str,
    serial_number: String,
    version: u8,
    metadata: Metadata,
    components: Vec<Component>,
    dependencies: Vec<Dependency>,
}

impl Bom {
    pub(super) fn new(metadata: Metadata, components: Vec<Component>, dependencies: Vec<Dependency>) -> Bom {
        Bom {
            schema: SCHEMA,
            bom_format: "CycloneDX",
            spec_version: "1.6",
            serial_number: String::new(),
            version: 1,
            metadata,
            components,
            dependencies,
        }
    }

    /// A UUID of version 8, whose digits may be chosen freely, from those of a digest.
    pub(super) fn set_serial_number(&mut self, hex: &str) {
        let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
        let (a, b, c, d, e) = (part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32));
        self.serial_number = format!("urn:uuid:{a}-{b}-8{c}-8{d}-{e}");
    }
}

#[derive(Serialize)]
pub(super) struct Metadata {
    timestamp: String,
    tools: Tools,
    component: Component,
}

#[derive(Serialize)]
struct Tools {
    components: Vec<Component>,
}

impl Metadata {
    pub(super) fn new(time: &str, component: Component, source: &str) -> Metadata {
        let mut tool =
            Component::new(Kind::Application, "tool".to_owned(), "xtask image-archive", env!("CARGO_PKG_VERSION"));
        tool.external_references = vec![Reference { kind: "vcs", url: source.to_owned() }];
        Metadata { timestamp: time.to_owned(), tools: Tools { components: vec![tool] }, component }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Application,
    Container,
    #[default]
    Library,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Component {
    #[serde(rename = "type")]
    kind: Kind,
    /// By which the rest of the document refers to it.
    #[serde(rename = "bom-ref")]
    pub(super) reference: String,
    name: String,
    version: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hashes: Vec<Hash>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    licenses: Vec<License>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) purl: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    external_references: Vec<Reference>,
}

impl Component {
    pub(super) fn new(kind: Kind, reference: String, name: &str, version: &str) -> Component {
        Component { kind, reference, name: name.to_owned(), version: version.to_owned(), ..Component::default() }
    }

    pub(super) fn with_sha256(mut self, digits: &str) -> Component {
        self.hashes.push(Hash { alg: "SHA-256", content: digits.to_owned() });
        self
    }

    pub(super) fn with_license(mut self, expression: Option<&str>) -> Component {
        self.licenses.extend(expression.map(|expression| License { expression: expression.to_owned() }));
        self
    }
}

#[derive(Serialize)]
struct Hash {
    alg: &'static str,
    content: String,
}

#[derive(Serialize)]
struct License {
    expression: String,
}

#[derive(Serialize)]
struct Reference {
    #[serde(rename = "type")]
    kind: &'static str,
    url: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Dependency {
    #[serde(rename = "ref")]
    used_by: String,
    depends_on: BTreeSet<String>,
}

impl Dependency {
    pub(super) fn new(used_by: String, depends_on: BTreeSet<String>) -> Dependency {
        Dependency { used_by, depends_on }
    }
}
