//! Objects as users write them, in YAML. Each function takes the fields of a case and adds what makes the rest of the object valid.
//! Also patches of existing objects.

use virt_advisor_api::names::{ADVISOR_GROUP, SIMULATION_GROUP};

/// Where the objects of a kind live, and how they begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) group: &'static str,
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
}

pub(crate) const CONFIG: Kind = Kind {
    group: ADVISOR_GROUP,
    name: "VirtPlatformConfig",
    path: "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs",
};

pub(crate) const RECORD: Kind = Kind {
    group: ADVISOR_GROUP,
    name: "VirtPlatformPlanRecord",
    path: "/apis/advisor.kubevirt.io/v1alpha1/virtplatformplanrecords",
};

pub(crate) const MACHINE: Kind = Kind {
    group: SIMULATION_GROUP,
    name: "VirtualMachine",
    path: "/apis/simulation.node-classifier.io/v1alpha1/namespaces/default/virtualmachines",
};

#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// More fields of the metadata.
    pub(crate) metadata: String,
    /// Everything after the metadata.
    pub(crate) body: String,
}

impl Manifest {
    pub(crate) fn new(kind: Kind, name: &str, body: &str) -> Self {
        Manifest { kind, name: name.to_owned(), metadata: String::new(), body: body.to_owned() }
    }

    /// The same with more metadata, for example `labels: {a: b}`.
    pub(crate) fn with_metadata(mut self, fields: &str) -> Self {
        self.metadata = fields.to_owned();
        self
    }

    pub(crate) fn yaml(&self) -> String {
        let Manifest { kind: Kind { group, name: kind, .. }, name, metadata, body } = self;
        format!("apiVersion: {group}/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}, {metadata}}}\n{body}\n")
    }
}

/// A merge patch, written as YAML, of an object that is there.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    kind: Kind,
    name: &'static str,
    subresource: &'static str,
    pub(crate) yaml: String,
}

impl Change {
    pub(crate) fn path(&self) -> String {
        format!("{}/{}{}", self.kind.path, self.name, self.subresource)
    }
}

/// A change of the object itself, for example `spec: {action: Apply}`.
pub(crate) fn change(kind: Kind, name: &'static str, yaml: &str) -> Change {
    Change { kind, name, subresource: "", yaml: yaml.to_owned() }
}

/// A change of the object by way of its status subresource.
pub(crate) fn change_by_status(kind: Kind, name: &'static str, yaml: &str) -> Change {
    Change { subresource: "/status", ..change(kind, name, yaml) }
}

/// A VirtPlatformConfig of the given name and spec.
pub(crate) fn config(name: &str, spec: &str) -> Manifest {
    Manifest::new(CONFIG, name, &format!("spec: {{{spec}}}"))
}

/// A VirtPlatformConfig of the given profile, and named after it, with more fields of the spec.
pub(crate) fn profile(profile: &str, spec: &str) -> Manifest {
    config(profile, &format!("profile: {profile}, {spec}"))
}

pub(crate) fn example(spec: &str) -> Manifest {
    profile("example-profile", spec)
}

/// A VirtPlatformConfig with the given fields of `spec.options.loadAware`.
pub(crate) fn load_aware(options: &str) -> Manifest {
    profile("load-aware-rebalancing", &format!("options: {{loadAware: {{{options}}}}}"))
}

/// A VirtPlatformConfig with the given fields of `spec.options.virtHigherDensity`.
pub(crate) fn density(options: &str) -> Manifest {
    profile("virt-higher-density", &format!("options: {{virtHigherDensity: {{{options}}}}}"))
}

/// A VirtPlatformConfig with the given fields of the selector of KSM.
pub(crate) fn selector(fields: &str) -> Manifest {
    density(&format!("ksmConfiguration: {{nodeLabelSelector: {{{fields}}}}}"))
}

/// A VirtualMachine of the given spec, under a name that nobody else uses.
pub(crate) fn machine(spec: &str) -> Manifest {
    Manifest::new(MACHINE, "virt-advisor-api-test", &format!("spec: {{{spec}}}"))
}

/// A VirtualMachine of the given `spec.resources`.
pub(crate) fn guest(resources: &str) -> Manifest {
    machine(&format!("resources: {{{resources}}}"))
}

/// A VirtualMachine of the given `spec.utilization`.
pub(crate) fn busy(utilization: &str) -> Manifest {
    machine(&format!("resources: {{cpu: 2, memory: 4Gi}}, utilization: {{{utilization}}}"))
}
