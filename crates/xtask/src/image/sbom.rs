//! The bill of materials of an image: everything that is in its files, in the format CycloneDX 1.6.
//! Its bytes follow from the image and the commit.

mod document;

use std::collections::{BTreeMap, BTreeSet};

use super::{
    cargo_packages::{PackageId, Packages},
    contents::SOURCE,
    digest::sha256,
    go_build_info::GoBuildInfo,
    runtime::Runtime,
};
use document::{Bom, Component, Dependency, Kind, Metadata};

/// The image that is described.
#[derive(Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: &'a str,
    /// The digits of the digest of its manifest.
    pub(crate) sha256: &'a str,
    /// The time of the commit.
    pub(crate) time: &'a str,
}

/// A program of others in the image.
#[derive(Debug)]
pub(crate) struct GoProgram<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: &'a str,
    pub(crate) sha256: String,
    pub(crate) build: GoBuildInfo,
}

/// Our program in the image.
#[derive(Debug)]
pub(crate) struct RustProgram<'a> {
    pub(crate) root: &'a PackageId,
    pub(crate) packages: &'a Packages,
    pub(crate) runtime: &'a Runtime,
    pub(crate) sha256: String,
}

/// Components by their names, and what each uses.
#[derive(Default)]
struct Parts {
    components: BTreeMap<String, Component>,
    uses: BTreeMap<String, BTreeSet<String>>,
}

/// The document as JSON, with a line for each field so that people can compare two of them.
pub(crate) fn document(
    subject: &Subject<'_>,
    ours: &RustProgram<'_>,
    others: &[GoProgram<'_>],
) -> anyhow::Result<String> {
    let image = format!("pkg:oci/{}@sha256%3A{}", short_name(subject.name), subject.sha256);
    let mut parts = Parts::default();
    let mut programs = BTreeSet::from([parts.add_rust(ours)]);
    programs.extend(others.iter().map(|program| parts.add_go(program)));
    parts.uses.insert(image.clone(), programs);
    let mut top = Component::new(Kind::Container, image.clone(), subject.name, subject.version);
    top.purl = Some(image);
    top = top.with_sha256(subject.sha256);
    let dependencies = parts.uses.into_iter().map(|(used_by, uses)| Dependency::new(used_by, uses)).collect();
    let metadata = Metadata::new(subject.time, top, SOURCE);
    let mut bom = Bom::new(metadata, parts.components.into_values().collect(), dependencies);
    bom.set_serial_number(&sha256(&serde_json::to_vec(&bom)?));
    Ok(serde_json::to_string_pretty(&bom)? + "\n")
}

impl Parts {
    fn add(&mut self, component: Component, uses: BTreeSet<String>) -> String {
        let name = component.reference.clone();
        self.components.insert(name.clone(), component);
        self.uses.insert(name.clone(), uses);
        name
    }

    fn add_rust(&mut self, program: &RustProgram<'_>) -> String {
        let mut libraries = BTreeSet::new();
        for (name, version) in [("rust-std", &program.runtime.rust), ("glibc", &program.runtime.glibc)] {
            let Some(version) = version else { continue };
            let mut library = Component::new(Kind::Library, generic_purl(name, version), name, version);
            library.purl = Some(library.reference.clone());
            libraries.insert(self.add(library, BTreeSet::new()));
        }
        for (id, package) in program.packages {
            let is_program = id == program.root;
            let kind = if is_program { Kind::Application } else { Kind::Library };
            let mut component = Component::new(kind, cargo_purl(id), &id.name, &id.version);
            component.purl = Some(component.reference.clone());
            component = component.with_license(package.license.as_deref());
            let checksum = if is_program { Some(&program.sha256) } else { package.checksum.as_ref() };
            if let Some(checksum) = checksum {
                component = component.with_sha256(checksum);
            }
            let mut uses: BTreeSet<String> = package.dependencies.iter().map(cargo_purl).collect();
            if is_program {
                uses.append(&mut libraries);
            }
            self.add(component, uses);
        }
        cargo_purl(program.root)
    }

    /// Go tells which modules a program has, and not which of them uses which.
    fn add_go(&mut self, program: &GoProgram<'_>) -> String {
        let mut modules = BTreeSet::new();
        for module in &program.build.modules {
            let mut library =
                Component::new(Kind::Library, go_purl(&module.path, &module.version), &module.path, &module.version);
            library.purl = Some(library.reference.clone());
            modules.insert(self.add(library, BTreeSet::new()));
        }
        let go = &program.build.go;
        let mut standard = Component::new(Kind::Library, go_purl("stdlib", go), "stdlib", go);
        standard.purl = Some(standard.reference.clone());
        modules.insert(self.add(standard, BTreeSet::new()));
        let file = Component::new(Kind::Application, format!("file:/{}", program.name), program.name, program.version);
        self.add(file.with_sha256(&program.sha256), modules)
    }
}

/// The last part of the name of an image.
fn short_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn cargo_purl(id: &PackageId) -> String {
    format!("pkg:cargo/{}@{}", id.name, encoded(&id.version))
}

/// Names of Go's modules have no capital letters in package URLs.
fn go_purl(path: &str, version: &str) -> String {
    format!("pkg:golang/{}@{}", path.to_lowercase(), encoded(version))
}

fn generic_purl(name: &str, version: &str) -> String {
    format!("pkg:generic/{name}@{}", encoded(version))
}

/// Versions may have a plus, which means something else in a URL.
fn encoded(version: &str) -> String {
    version.replace('+', "%2B")
}

#[cfg(test)]
mod tests;
