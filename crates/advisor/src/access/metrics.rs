//! Rights around the metrics: what the operator needs to know who asks for them, and roles for those who ask.

use super::{
    Role, Rule, SERVICE_ACCOUNT,
    yaml::{MARK, RBAC, bind, binding_to, header, role},
};

const HEAD: &str = "\
# The port of the metrics. The operator asks the API server who sends a request and whether they may, and accepts certificates
# of the CA that the API server publishes in kube-system. It needs no right to the metrics itself.

";

/// The Role of Kubernetes itself by which the CA of client certificates is read, and its namespace.
pub const CLIENT_CA_READER: (&str, &str) = ("kube-system", "extension-apiserver-authentication-reader");

/// A ClusterRole about a path of the operator's own server. Verbs are HTTP methods in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathRole {
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    pub path: &'static str,
    pub verbs: &'static [&'static str],
}

/// Roles to bind to those who read metrics, and to those who change the log level.
pub const PATH_ROLES: [PathRole; 2] = [
    PathRole { name: "metrics-reader", about: "Reads the metrics.", path: "/metrics", verbs: &["get"] },
    PathRole {
        name: "log-level-editor",
        about: "Reads and changes the log level of a running operator.",
        path: "/loglevel",
        verbs: &["get", "put"],
    },
];

/// What the operator needs to know who sends a request.
pub fn request_reviewer() -> Role {
    let create = |why: &str, group, resource| Rule {
        why: why.to_owned(),
        group,
        resource,
        names: Vec::new(),
        verbs: vec!["create"],
    };
    Role {
        name: "metrics-auth-role",
        about: "To know who asks for metrics, and whether they may.",
        namespace: None,
        part_of: &[],
        rules: vec![
            create("Who has a token.", "authentication.k8s.io", "tokenreviews"),
            create("Whether that user may read the path.", "authorization.k8s.io", "subjectaccessreviews"),
        ],
    }
}

/// The file with all of it, except the port itself.
pub(super) fn file() -> (&'static str, String) {
    let reviewer = request_reviewer();
    let (namespace, reader) = CLIENT_CA_READER;
    let mut documents =
        vec![role(&reviewer), binding_to(SERVICE_ACCOUNT, &reviewer), client_ca_binding(namespace, reader)];
    documents.extend(PATH_ROLES.iter().map(path_role));
    ("config/rbac/metrics.yaml", format!("{MARK}{HEAD}{}", documents.join("---\n")))
}

fn client_ca_binding(namespace: &'static str, reader: &str) -> String {
    let about = "# The CA of client certificates. The Role is one of Kubernetes, in every cluster.\n";
    format!("{about}{}", bind("metrics-auth-reader", Some(namespace), reader, SERVICE_ACCOUNT))
}

fn path_role(role: &PathRole) -> String {
    format!(
        "# {}\n{}rules:\n- nonResourceURLs: [{}]\n  verbs: [{}]\n",
        role.about,
        header(&format!("{RBAC}/v1"), "ClusterRole", role.name, None),
        role.path,
        role.verbs.join(", "),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_file_grants_two_reviews_one_config_map_and_nothing_else_to_the_operator() {
        let documents: Vec<Value> = serde_saphyr::from_multiple(&file().1).unwrap();
        let kinds: Vec<_> = documents.iter().map(|document| document["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["ClusterRole", "ClusterRoleBinding", "RoleBinding", "ClusterRole", "ClusterRole"]);
        let rules = json!([
            {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
            {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
        ]);
        assert_eq!(documents[0]["rules"], rules);
        for binding in &documents[1..3] {
            assert_eq!(binding["subjects"][0]["name"], SERVICE_ACCOUNT);
        }
        assert_eq!(documents[2]["metadata"]["namespace"], CLIENT_CA_READER.0);
        assert_eq!(documents[2]["roleRef"]["name"], CLIENT_CA_READER.1);
        let paths = [json!(["/metrics"]), json!(["/loglevel"])];
        assert_eq!([&documents[3], &documents[4]].map(|role| role["rules"][0]["nonResourceURLs"].clone()), paths);
        assert_eq!(documents[3]["rules"][0]["verbs"], json!(["get"]), "who reads metrics changes nothing");
    }
}
