//! Names that the descheduler operator and its readers agree on.

/// Where the operator looks for its one object.
pub const NAMESPACE: &str = "openshift-kube-descheduler-operator";
/// The name of that object.
pub const OBJECT: &str = "cluster";

/// Where the policy is: the key in the ConfigMap that is named like the object.
pub const POLICY_KEY: &str = "policy.yaml";
/// The Deployment of the descheduler.
pub const OPERAND: &str = "descheduler";
/// Annotation of the Deployment's pods: the generation of the object that they were made for.
pub const GENERATION: &str = "kubedeschedulers.operator.openshift.io/cluster";
/// Label of whatever a stand-in made.
pub const STAND_IN_LABEL: &str = crate::mco::names::STAND_IN_LABEL;

/// Label of the namespace, without which Prometheus would not see the descheduler.
pub const MONITORED: &str = "openshift.io/cluster-monitoring=true";
/// Label of nodes that virtual machines can run on.
pub const SCHEDULABLE: &str = "kubevirt.io/schedulable=true";

/// The Secret with the token that the descheduler presents to Prometheus. The lab's takes any.
pub const TOKEN_SECRET: &str = "descheduler-prometheus-token";
pub const TOKEN_KEY: &str = "prometheusAuthToken";

/// Who the stand-in is in `managedFields`.
pub const FIELD_MANAGER: &str = "kube-descheduler-stand-in";
