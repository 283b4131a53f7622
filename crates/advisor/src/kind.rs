//! The kinds of objects that profiles read and write, and references to objects of them.
//!
//! Plurals and scopes are constants, without discovery: the answer to a GET tells whether the kind is served.

use std::fmt;

use api::{
    names::{ADVISOR_GROUP, VERSION},
    virt_platform_config::TargetRef,
};

/// A kind and its supported versions. The first served one is used.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// Empty for the core group.
    pub group: &'static str,
    pub versions: &'static [&'static str],
    pub kind: &'static str,
    pub plural: &'static str,
    pub namespaced: bool,
}

impl Kind {
    /// The version that is asked for first.
    pub fn first_version(&self) -> &'static str {
        self.versions.first().copied().unwrap_or_default()
    }

    pub fn api_version(&self, version: &str) -> String {
        match self.group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        }
    }

    /// Whether plans depend on the status of its objects. For all other kinds, a change of the status is ignored.
    pub fn has_relevant_status(&self) -> bool {
        [&KUBE_DESCHEDULER, &DEPLOYMENT].contains(&self)
    }
}

pub static KUBE_DESCHEDULER: Kind = Kind {
    group: "operator.openshift.io",
    versions: &["v1"],
    kind: "KubeDescheduler",
    plural: "kubedeschedulers",
    namespaced: true,
};

pub static MACHINE_CONFIG: Kind = Kind {
    group: "machineconfiguration.openshift.io",
    versions: &["v1"],
    kind: "MachineConfig",
    plural: "machineconfigs",
    namespaced: false,
};

pub static MACHINE_CONFIG_POOL: Kind = Kind {
    group: "machineconfiguration.openshift.io",
    versions: &["v1"],
    kind: "MachineConfigPool",
    plural: "machineconfigpools",
    namespaced: false,
};

/// Has the node disruption policy: which changes the machine config daemon makes without a reboot.
pub static MACHINE_CONFIGURATION: Kind = Kind {
    group: "operator.openshift.io",
    versions: &["v1"],
    kind: "MachineConfiguration",
    plural: "machineconfigurations",
    namespaced: false,
};

pub static HYPER_CONVERGED: Kind = Kind {
    group: "hco.kubevirt.io",
    versions: &["v1beta1", "v1"],
    kind: "HyperConverged",
    plural: "hyperconvergeds",
    namespaced: true,
};

pub static CONFIG_MAP: Kind =
    Kind { group: "", versions: &["v1"], kind: "ConfigMap", plural: "configmaps", namespaced: true };

pub static DEPLOYMENT: Kind =
    Kind { group: "apps", versions: &["v1"], kind: "Deployment", plural: "deployments", namespaced: true };

/// The version of OpenShift that is installed.
pub static CLUSTER_VERSION: Kind = Kind {
    group: "config.openshift.io",
    versions: &["v1"],
    kind: "ClusterVersion",
    plural: "clusterversions",
    namespaced: false,
};

pub static CUSTOM_RESOURCE_DEFINITION: Kind = Kind {
    group: "apiextensions.k8s.io",
    versions: &["v1"],
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
    namespaced: false,
};

/// The records of applied plans. They never change, so nobody watches them.
pub static PLAN_RECORD: Kind = Kind {
    group: ADVISOR_GROUP,
    versions: &[VERSION],
    kind: "VirtPlatformPlanRecord",
    plural: "virtplatformplanrecords",
    namespaced: false,
};

/// A reference to one object, in any version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    pub kind: &'static Kind,
    pub namespace: Option<&'static str>,
    pub name: String,
}

impl ObjectRef {
    pub fn cluster(kind: &'static Kind, name: impl Into<String>) -> Self {
        ObjectRef { kind, namespace: None, name: name.into() }
    }

    pub fn namespaced(kind: &'static Kind, namespace: &'static str, name: impl Into<String>) -> Self {
        ObjectRef { kind, namespace: Some(namespace), name: name.into() }
    }

    /// The definition of a custom kind.
    pub fn definition(kind: &'static Kind) -> Self {
        ObjectRef::cluster(&CUSTOM_RESOURCE_DEFINITION, format!("{}.{}", kind.plural, kind.group))
    }

    pub fn target(&self, version: &str) -> TargetRef {
        TargetRef {
            api_version: self.kind.api_version(version),
            kind: self.kind.kind.to_owned(),
            name: self.name.clone(),
            namespace: self.namespace.map(str::to_owned),
        }
    }
}

/// `KubeDescheduler openshift-kube-descheduler-operator/cluster`
impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind.kind)?;
        if let Some(namespace) = self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}
