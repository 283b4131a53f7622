//! Where an image comes from: a statement in the format of in-toto, with SLSA's predicate. Nobody signs it here.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{commit::Commit, contents::SOURCE};

const STATEMENT: &str = "https://in-toto.io/Statement/v1";
const PREDICATE: &str = "https://slsa.dev/provenance/v1";

/// What a statement is about.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    /// The image, and the digits of the digest of its manifest.
    pub(crate) image: Digested,
    pub(crate) commit: &'a Commit,
    pub(crate) architecture: &'a str,
    /// What was asked for.
    pub(crate) request: Request,
    /// Cargo.lock, and for programs of others the files that pin them.
    pub(crate) materials: Vec<Digested>,
    /// The files in the image, and its bill of materials.
    pub(crate) byproducts: Vec<Digested>,
    /// Compilers and their versions.
    pub(crate) versions: Vec<(&'static str, String)>,
}

/// How the program in the image was made.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Request {
    /// By this command.
    Build { command: Vec<String>, profile: String },
    /// It was there before, and how it was built is not known here.
    Given { program: String },
}

/// Something by its name and the digits of its SHA-256 digest.
#[derive(Debug, Clone)]
pub(crate) struct Digested {
    pub(crate) name: String,
    pub(crate) sha256: String,
}

impl Facts<'_> {
    pub(crate) fn statement(&self) -> anyhow::Result<String> {
        let commit = self.commit.hash().map(|hash| Resource {
            uri: Some(format!("git+{SOURCE}@{hash}")),
            name: None,
            digest: Digest { git_commit: Some(hash.to_owned()), sha256: None },
        });
        let resources = |all: &[Digested]| all.iter().map(Resource::of).collect::<Vec<_>>();
        let versions = self.versions.iter().cloned().collect();
        let statement = Statement {
            kind: STATEMENT,
            subject: [Resource::of(&self.image)],
            predicate_type: PREDICATE,
            predicate: Predicate {
                build_definition: BuildDefinition {
                    build_type: format!("{SOURCE}/blob/main/docs/images.md#provenance"),
                    external_parameters: Parameters {
                        image: &self.image.name,
                        architecture: self.architecture,
                        request: &self.request,
                        tree_is_modified: self.commit.is_modified(),
                    },
                    resolved_dependencies: commit.into_iter().chain(resources(&self.materials)).collect(),
                },
                run_details: RunDetails {
                    builder: Builder { id: format!("{SOURCE}/tree/main/crates/xtask"), version: versions },
                    byproducts: resources(&self.byproducts),
                },
            },
        };
        Ok(serde_json::to_string_pretty(&statement)? + "\n")
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Statement<'a> {
    #[serde(rename = "_type")]
    kind: &'static str,
    subject: [Resource; 1],
    predicate_type: &'static str,
    predicate: Predicate<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Predicate<'a> {
    build_definition: BuildDefinition<'a>,
    run_details: RunDetails,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BuildDefinition<'a> {
    build_type: String,
    external_parameters: Parameters<'a>,
    resolved_dependencies: Vec<Resource>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Parameters<'a> {
    image: &'a str,
    architecture: &'a str,
    request: &'a Request,
    tree_is_modified: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunDetails {
    builder: Builder,
    byproducts: Vec<Resource>,
}

#[derive(Serialize)]
struct Builder {
    id: String,
    version: BTreeMap<&'static str, String>,
}

#[derive(Serialize)]
struct Resource {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    digest: Digest,
}

impl Resource {
    fn of(digested: &Digested) -> Resource {
        let digest = Digest { sha256: Some(digested.sha256.clone()), git_commit: None };
        Resource { name: Some(digested.name.clone()), uri: None, digest }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Digest {
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    git_commit: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn statement(request: Request) -> Value {
        let digested = |name: &str, digit: &str| Digested { name: name.to_owned(), sha256: digit.repeat(64) };
        let commit = Commit::at("0123abcd", 1_700_000_000);
        let facts = Facts {
            image: digested("me/it:v1", "a"),
            commit: &commit,
            architecture: "amd64",
            request,
            materials: vec![digested("Cargo.lock", "b")],
            byproducts: vec![digested("virt-advisor", "c")],
            versions: vec![("rustc", "1.95.0".to_owned())],
        };
        serde_json::from_str(&facts.statement().unwrap()).unwrap()
    }

    #[test]
    fn a_statement_names_image_commit_command_and_materials() {
        let command = vec!["cargo".to_owned(), "build".to_owned()];
        let statement = statement(Request::Build { command, profile: "release".to_owned() });
        assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
        assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
        assert_eq!(statement["subject"], json!([{"name": "me/it:v1", "digest": {"sha256": "a".repeat(64)}}]));
        let definition = &statement["predicate"]["buildDefinition"];
        assert_eq!(
            definition["externalParameters"],
            json!({"image": "me/it:v1", "architecture": "amd64", "treeIsModified": false,
                "request": {"build": {"command": ["cargo", "build"], "profile": "release"}}})
        );
        assert_eq!(
            definition["resolvedDependencies"],
            json!([
                {"uri": format!("git+{SOURCE}@0123abcd"), "digest": {"gitCommit": "0123abcd"}},
                {"name": "Cargo.lock", "digest": {"sha256": "b".repeat(64)}},
            ])
        );
        let details = &statement["predicate"]["runDetails"];
        assert!(details["builder"]["id"].as_str().unwrap().starts_with(SOURCE));
        assert_eq!(details["builder"]["version"], json!({"rustc": "1.95.0"}));
        assert_eq!(details["byproducts"][0]["name"], "virt-advisor");
    }

    /// No command is claimed that was not run.
    #[test]
    fn a_program_that_was_given_is_told_as_that() {
        let statement = statement(Request::Given { program: "virt-advisor".to_owned() });
        let request = &statement["predicate"]["buildDefinition"]["externalParameters"]["request"];
        assert_eq!(request, &json!({"given": {"program": "virt-advisor"}}));
    }
}
