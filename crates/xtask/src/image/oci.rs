//! The documents of an image in OCI's format. Structs, not maps: the order of their fields decides about digests.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    arch::Arch,
    commit::Commit,
    contents::{Image, USER},
    digest::Blob,
    layer::Layer,
    reference::ImageReference,
};

pub(crate) const LAYOUT: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// An image: three blobs that refer to each other, manifest to configuration and layer.
#[derive(Debug)]
pub(crate) struct Documents {
    pub(crate) manifest: Blob,
    pub(crate) config: Blob,
    pub(crate) layer: Layer,
}

impl Documents {
    pub(crate) fn new(image: Image, arch: Arch, commit: &Commit, layer: Layer) -> anyhow::Result<Documents> {
        let created = commit.time();
        let config = Blob::new(serde_json::to_vec(&Config {
            created: &created,
            architecture: arch.name(),
            os: "linux",
            config: Execution {
                user: USER,
                entrypoint: image.entrypoint(),
                cmd: image.command(),
                working_dir: "/",
                labels: image.labels(commit).into_iter().collect(),
            },
            rootfs: RootFs { kind: "layers", diff_ids: [&layer.diff_id] },
            history: [Step { created: &created, created_by: "xtask image-archive" }],
        })?);
        let manifest = Blob::new(serde_json::to_vec(&Manifest {
            schema_version: 2,
            media_type: MANIFEST,
            config: Descriptor::new(CONFIG, &config),
            layers: [Descriptor::new(LAYER, &layer.packed)],
        })?);
        Ok(Documents { manifest, config, layer })
    }

    /// The list of images in an archive: this one, by its name.
    pub(crate) fn index(&self, reference: &ImageReference, arch: Arch) -> anyhow::Result<Vec<u8>> {
        let mut manifest = Descriptor::new(MANIFEST, &self.manifest);
        manifest.platform = Some(Platform { architecture: arch.name(), os: "linux" });
        manifest.annotations = BTreeMap::from([
            // `ctr images import` takes the name from this one, `podman load` and skopeo from the next.
            ("io.containerd.image.name", reference.to_string()),
            ("org.opencontainers.image.ref.name", reference.to_string()),
            // `cosign load` looks for it.
            ("kind", "dev.cosignproject.cosign/image".to_owned()),
        ]);
        let index = Index { schema_version: 2, media_type: INDEX, manifests: [manifest] };
        Ok(serde_json::to_vec(&index)?)
    }

    /// The same for `docker load`, which reads this and no index.
    pub(crate) fn docker_manifest(&self, reference: &ImageReference) -> anyhow::Result<Vec<u8>> {
        let image = DockerImage {
            config: blob_path(&self.config),
            repo_tags: [reference.to_string()],
            layers: [blob_path(&self.layer.packed)],
        };
        Ok(serde_json::to_vec(&[image])?)
    }

    pub(crate) fn blobs(&self) -> [&Blob; 3] {
        [&self.manifest, &self.config, &self.layer.packed]
    }

    /// What a node downloads.
    pub(crate) fn packed_size(&self) -> u64 {
        self.blobs().iter().map(|blob| blob.bytes.len() as u64).sum()
    }
}

/// Where a blob is in an archive.
pub(crate) fn blob_path(blob: &Blob) -> String {
    format!("blobs/sha256/{}", blob.hex())
}

#[derive(Serialize)]
struct Config<'a> {
    created: &'a str,
    architecture: &'a str,
    os: &'a str,
    config: Execution<'a>,
    rootfs: RootFs<'a>,
    history: [Step<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Execution<'a> {
    user: &'a str,
    entrypoint: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cmd: Vec<String>,
    working_dir: &'a str,
    labels: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct RootFs<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    diff_ids: [&'a str; 1],
}

#[derive(Serialize)]
struct Step<'a> {
    created: &'a str,
    created_by: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest<'a> {
    schema_version: u8,
    media_type: &'a str,
    config: Descriptor<'a>,
    layers: [Descriptor<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Index<'a> {
    schema_version: u8,
    media_type: &'a str,
    manifests: [Descriptor<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor<'a> {
    media_type: &'a str,
    digest: &'a str,
    size: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    platform: Option<Platform<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'a str, String>,
}

impl<'a> Descriptor<'a> {
    fn new(media_type: &'a str, blob: &'a Blob) -> Self {
        let (digest, size) = (&*blob.digest, blob.bytes.len());
        Descriptor { media_type, digest, size, platform: None, annotations: BTreeMap::new() }
    }
}

#[derive(Serialize)]
struct Platform<'a> {
    architecture: &'a str,
    os: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct DockerImage {
    config: String,
    repo_tags: [String; 1],
    layers: [String; 1],
}
