//! Kubeconfig values and files: one cluster, one user, one context.

use std::{
    io::{self, Write},
    path::Path,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use kube::config::{AuthInfo, Cluster, Context as KubeContext, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext};

use tempfile::NamedTempFile;

use crate::{
    error::{Context, Error, Result},
    pki::CertificateAndKey,
};

const NAME: &str = "devcluster";

/// A kubeconfig that needs no other file: certificates and keys are inside.
pub(crate) fn with_certificate(server: &str, ca: &str, pair: &CertificateAndKey) -> Kubeconfig {
    let auth = certificate(pair);
    let cluster = Cluster {
        server: Some(server.to_owned()),
        certificate_authority_data: Some(BASE64_STANDARD.encode(ca)),
        ..Cluster::default()
    };
    Kubeconfig {
        api_version: Some("v1".into()),
        kind: Some("Config".into()),
        clusters: vec![NamedCluster { name: NAME.into(), cluster: Some(cluster), ..Default::default() }],
        auth_infos: vec![NamedAuthInfo { name: NAME.into(), auth_info: Some(auth), ..Default::default() }],
        contexts: vec![NamedContext {
            name: NAME.into(),
            context: Some(KubeContext {
                cluster: NAME.into(),
                user: Some(NAME.into()),
                namespace: Some("default".into()),
                ..Default::default()
            }),
            ..Default::default()
        }],
        current_context: Some(NAME.into()),
        ..Kubeconfig::default()
    }
}

pub(crate) fn certificate(pair: &CertificateAndKey) -> AuthInfo {
    AuthInfo {
        client_certificate_data: Some(BASE64_STANDARD.encode(&pair.certificate)),
        client_key_data: Some(BASE64_STANDARD.encode(&pair.key).into()),
        ..AuthInfo::default()
    }
}

/// The same cluster with other credentials: `change` edits those of the current context's user.
pub(crate) fn with_auth(base: &Kubeconfig, change: impl FnOnce(AuthInfo) -> AuthInfo) -> Kubeconfig {
    let mut config = base.clone();
    let current = config.contexts.iter().find(|context| Some(&context.name) == config.current_context.as_ref());
    let user = current.and_then(|context| context.context.as_ref()?.user.clone());
    if let Some(named) = config.auth_infos.iter_mut().find(|named| Some(&named.name) == user.as_ref()) {
        named.auth_info = Some(change(named.auth_info.take().unwrap_or_default()));
    }
    config
}

/// Writes a file that only its owner may read, because it holds a key or a token. It is replaced at once, for readers.
pub(crate) fn write(config: &Kubeconfig, path: &Path) -> Result<()> {
    let doing = || format!("writing {}", path.display());
    let text =
        serde_saphyr::to_string(config).map_err(|cause| Error::Yaml { doing: doing(), cause: Box::new(cause) })?;
    let write = || -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut aside = NamedTempFile::new_in(folder)?;
        aside.write_all(text.as_bytes())?;
        aside.persist(path)?;
        Ok(())
    };
    write().context(doing)
}
