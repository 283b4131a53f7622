//! Names that the stand-in writes or looks for: the machine config operator's own, and those that mark its work as play.

/// Field manager of everything the stand-in writes.
pub const FIELD_MANAGER: &str = "mco-stand-in";

/// Label, `"true"` on objects that the stand-in creates.
pub const STAND_IN_LABEL: &str = "advisor.kubevirt.io/stand-in";

/// Node annotation with the time at which its state was last changed. MCO has no such thing: its reboots take as long as
/// they take.
pub const SINCE: &str = "advisor.kubevirt.io/stand-in-since";

/// Node annotation with the rendered config that the node runs.
pub const CURRENT_CONFIG: &str = "machineconfiguration.openshift.io/currentConfig";

/// Node annotation with the rendered config that the node should run.
pub const DESIRED_CONFIG: &str = "machineconfiguration.openshift.io/desiredConfig";

/// Node annotation with what the machine config daemon is doing.
pub const STATE: &str = "machineconfiguration.openshift.io/state";

/// Node annotation with why it is degraded.
pub const REASON: &str = "machineconfiguration.openshift.io/reason";

/// Node annotation by which the daemon asks to be drained (`drain-<config>`) or uncordoned (`uncordon-<config>`).
pub const DESIRED_DRAIN: &str = "machineconfiguration.openshift.io/desiredDrain";

/// Node annotation that says which of these was done last.
pub const LAST_APPLIED_DRAIN: &str = "machineconfiguration.openshift.io/lastAppliedDrain";

/// Annotation of a rendered config with who rendered it.
pub const GENERATED_BY: &str = "machineconfiguration.openshift.io/generated-by-controller-version";

/// Label of a MachineConfig with the role it is meant for.
pub const ROLE: &str = "machineconfiguration.openshift.io/role";

/// Node annotation by which KWOK manages a node.
pub const KWOK_NODE: &str = "kwok.x-k8s.io/node";

/// Node label with its zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// Pod annotation of what the kubelet runs by itself.
pub const MIRROR_POD: &str = "kubernetes.io/config.mirror";
