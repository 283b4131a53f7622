//! Names of the descheduler operator and its objects.

/// The namespace of the operator and of its one KubeDescheduler.
pub const NAMESPACE: &str = "openshift-kube-descheduler-operator";
/// The name of the KubeDescheduler.
pub const OBJECT: &str = "cluster";

/// The key of the policy in the ConfigMap, which has the name of the KubeDescheduler.
pub const POLICY_KEY: &str = "policy.yaml";
/// The Deployment of the descheduler.
pub const OPERAND: &str = "descheduler";
/// Annotation of the Deployment's pods with the generation of the KubeDescheduler.
pub const GENERATION: &str = "kubedeschedulers.operator.openshift.io/cluster";

/// Label of namespaces that Prometheus monitors.
pub const MONITORED: &str = "openshift.io/cluster-monitoring=true";
/// Label of nodes that virtual machines can run on.
pub const SCHEDULABLE: &str = "kubevirt.io/schedulable=true";

/// The Secret with the token that the descheduler presents to Prometheus. The lab's Prometheus accepts any.
pub const TOKEN_SECRET: &str = "descheduler-prometheus-token";
pub const TOKEN_KEY: &str = "prometheusAuthToken";

/// The field manager of the stand-in.
pub const FIELD_MANAGER: &str = "kube-descheduler-stand-in";
