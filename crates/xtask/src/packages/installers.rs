//! Everything in one file, for `kubectl apply -f`: without the namespace, and with it.

use advisor::object_text;
use serde_json::Value;

use super::{
    MARK,
    installation::{Settings, namespace, objects},
};

/// For clusters with OpenShift Virtualization.
pub(crate) const INSTALLER: &str = "dist/install.yaml";
/// For all others.
pub(crate) const WITH_NAMESPACE: &str = "dist/install-with-namespace.yaml";

const PURPOSE: &str = "\
# The operator, its rights and its kinds, for clusters with OpenShift Virtualization, which owns the namespace openshift-cnv. Where
# there is no such namespace: install-with-namespace.yaml.
";

const PURPOSE_WITH_NAMESPACE: &str = "\
# The operator, its rights, its kinds and the namespace openshift-cnv, for clusters without OpenShift Virtualization.
";

const REMOVAL: &str = "\
#
#   install   kubectl apply --server-side -f {file}
#   remove    kubectl delete -f {file} -l app.kubernetes.io/name=virt-advisor-operator
#
# The selector keeps namespace, kinds and configurations. Without it, all of these are deleted, too.
";

/// Both files: path from the root of the repository, and content.
pub(crate) fn files(image: &str) -> anyhow::Result<Vec<(String, String)>> {
    let objects = objects(&Settings::with_image(image))?;
    let text = |path: &str, purpose: &str, objects: &[Value]| {
        let removal = REMOVAL.replace("{file}", path.trim_start_matches("dist/"));
        let documents: Vec<String> = objects.iter().map(|object| object_text::yaml(Some(object))).collect();
        (path.to_owned(), format!("{MARK}{purpose}{removal}---\n{}", documents.join("---\n")))
    };
    Ok(vec![
        text(INSTALLER, PURPOSE, &objects),
        text(WITH_NAMESPACE, PURPOSE_WITH_NAMESPACE, &[vec![namespace()], objects.clone()].concat()),
    ])
}
