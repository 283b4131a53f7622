//! Names that the stand-in writes or reads: those of the machine config operator, and those that mark objects as simulated.

/// Field manager of everything the stand-in writes.
pub const FIELD_MANAGER: &str = "mco-stand-in";

/// Node annotation with the time of the last change of its state. MCO does not have it; the stand-in times reboots by it.
pub const SINCE: &str = "advisor.kubevirt.io/stand-in-since";

/// Node annotation with the rendered config that the node runs.
pub const CURRENT_CONFIG: &str = "machineconfiguration.openshift.io/currentConfig";

/// Node annotation with the rendered config that the node should run.
pub const DESIRED_CONFIG: &str = "machineconfiguration.openshift.io/desiredConfig";

/// Node annotation with the state of the machine config daemon.
pub const STATE: &str = "machineconfiguration.openshift.io/state";

/// Node annotation with the reason why the node is degraded.
pub const REASON: &str = "machineconfiguration.openshift.io/reason";

/// Node annotation by which the daemon asks to be drained (`drain-<config>`) or uncordoned (`uncordon-<config>`).
pub const DESIRED_DRAIN: &str = "machineconfiguration.openshift.io/desiredDrain";

/// Node annotation with the last of these requests that was completed.
pub const LAST_APPLIED_DRAIN: &str = "machineconfiguration.openshift.io/lastAppliedDrain";

/// Taint of nodes that are to be updated. New pods prefer other nodes.
pub const UPDATE_IN_PROGRESS: &str = "UpdateInProgress";

/// Annotation of a rendered config with the version of the controller that rendered it.
pub const GENERATED_BY: &str = "machineconfiguration.openshift.io/generated-by-controller-version";

/// Label of a MachineConfig with the role that it is for.
pub const ROLE: &str = "machineconfiguration.openshift.io/role";

/// Annotation of nodes that KWOK manages.
pub const KWOK_NODE: &str = "kwok.x-k8s.io/node";

/// Node label with its zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// Annotation of pods that the kubelet runs from its own files.
pub const MIRROR_POD: &str = "kubernetes.io/config.mirror";
