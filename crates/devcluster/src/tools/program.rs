//! What each program is: its Go package, and the family (one Go module under `tools/`) that pins its version.
//!
//! The module files are part of this crate, so a binary built from it can build the programs anywhere Go is.

use std::time::Duration;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Program {
    Etcd,
    KubeApiserver,
    KubeControllerManager,
    KubeScheduler,
    Kubectl,
    Kwok,
    Descheduler,
    Prometheus,
    Promtool,
    ValidateKrewManifest,
    Helm,
    Helm3,
    OperatorVerify,
    Kubelet,
    KubeProxy,
    Containerd,
    ContainerdShimRuncV2,
    Ctr,
    Coredns,
    /// Of the oldest Kubernetes that is supported.
    OldestKubeApiserver,
}

impl Program {
    pub const ALL: [Program; 20] = [
        Program::Etcd,
        Program::KubeApiserver,
        Program::Kubectl,
        Program::KubeScheduler,
        Program::KubeControllerManager,
        Program::Kwok,
        Program::Descheduler,
        Program::Prometheus,
        Program::Promtool,
        Program::ValidateKrewManifest,
        Program::Helm,
        Program::Helm3,
        Program::OperatorVerify,
        Program::Kubelet,
        Program::KubeProxy,
        Program::Containerd,
        Program::ContainerdShimRuncV2,
        Program::Ctr,
        Program::Coredns,
        Program::OldestKubeApiserver,
    ];

    /// Whether a target of its own runs it, and `make test` does not.
    pub fn is_special(self) -> bool {
        use Program::{Helm, Helm3, OldestKubeApiserver, OperatorVerify};
        matches!(self, Helm | Helm3 | OperatorVerify | OldestKubeApiserver) || Self::OF_A_NODE.contains(&self)
    }

    /// Those that only `make node-test` runs: a node and the names of its cluster.
    pub const OF_A_NODE: [Program; 6] = [
        Program::Kubelet,
        Program::KubeProxy,
        Program::Containerd,
        Program::ContainerdShimRuncV2,
        Program::Ctr,
        Program::Coredns,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Program::Etcd => "etcd",
            Program::KubeApiserver => "kube-apiserver",
            Program::KubeControllerManager => "kube-controller-manager",
            Program::KubeScheduler => "kube-scheduler",
            Program::Kubectl => "kubectl",
            Program::Kwok => "kwok",
            Program::Descheduler => "descheduler",
            Program::Prometheus => "prometheus",
            Program::Promtool => "promtool",
            Program::ValidateKrewManifest => "validate-krew-manifest",
            Program::Helm => "helm",
            Program::Helm3 => "helm3",
            Program::OperatorVerify => "operator-verify",
            Program::Kubelet => "kubelet",
            Program::KubeProxy => "kube-proxy",
            Program::Containerd => "containerd",
            Program::ContainerdShimRuncV2 => "containerd-shim-runc-v2",
            Program::Ctr => "ctr",
            Program::Coredns => "coredns",
            Program::OldestKubeApiserver => "kube-apiserver-oldest",
        }
    }

    pub fn named(name: &str) -> Option<Program> {
        Program::ALL.into_iter().find(|program| program.name() == name)
    }

    /// The environment variable that names an existing program, as envtest has it.
    pub fn variable(self) -> String {
        format!("TEST_ASSET_{}", self.name().to_uppercase().replace('-', "_"))
    }

    pub fn version(self) -> &'static str {
        self.family().version()
    }

    /// The text of the `go.mod` and of the `go.sum` that pin it.
    pub fn pins(self) -> [&'static str; 2] {
        [self.family().go_mod, self.family().go_sum]
    }

    /// How long a build takes on two cores, if the programs before it in `ALL` are built already.
    pub(super) fn build_time(self) -> Duration {
        Duration::from_secs(match self {
            Program::Etcd | Program::KubeControllerManager | Program::Promtool => 60,
            Program::KubeApiserver | Program::OldestKubeApiserver => 360,
            Program::Kubectl | Program::KubeScheduler | Program::ValidateKrewManifest => 30,
            Program::Kwok => 90,
            Program::KubeProxy | Program::ContainerdShimRuncV2 | Program::Ctr => 30,
            Program::Descheduler => 150,
            Program::Prometheus | Program::Helm3 | Program::OperatorVerify => 180,
            Program::Kubelet | Program::Containerd | Program::Coredns => 180,
            Program::Helm => 360,
        })
    }

    pub(super) fn package(self) -> String {
        let module = self.family().module();
        match self {
            Program::Etcd => module.to_owned(),
            Program::Helm3 => format!("{module}/cmd/helm"),
            // The folder of the build, which has its `main.go`.
            Program::Coredns => ".".to_owned(),
            Program::OldestKubeApiserver => format!("{module}/cmd/kube-apiserver"),
            other => format!("{module}/cmd/{}", other.name()),
        }
    }

    pub(super) fn family(self) -> &'static Family {
        match self {
            Program::Etcd => &ETCD,
            Program::KubeApiserver
            | Program::KubeControllerManager
            | Program::KubeScheduler
            | Program::Kubectl
            | Program::Kubelet
            | Program::KubeProxy => &KUBERNETES,
            Program::Kwok => &KWOK,
            Program::Descheduler => &DESCHEDULER,
            Program::Prometheus | Program::Promtool => &PROMETHEUS,
            Program::ValidateKrewManifest => &KREW,
            Program::Helm => &HELM,
            Program::Helm3 => &HELM3,
            Program::OperatorVerify => &OPERATOR_FRAMEWORK,
            Program::Containerd | Program::ContainerdShimRuncV2 | Program::Ctr => &CONTAINERD,
            Program::Coredns => &COREDNS,
            Program::OldestKubeApiserver => &OLDEST_KUBERNETES,
        }
    }
}

/// Programs of one Go module, of one version.
#[derive(Debug)]
pub(super) struct Family {
    name: &'static str,
    module: &'static str,
    go_mod: &'static str,
    go_sum: &'static str,
    /// A program of our own around packages of the module.
    main_go: Option<&'static str>,
    tags: &'static str,
    /// Linker flags; `{version}`, `{major}` and `{minor}` are filled in.
    stamps: &'static [&'static str],
}

macro_rules! family {
    ($folder:literal, $module:literal, tags: $tags:literal, stamps: [$($stamp:literal),* $(,)?]) => {
        Family {
            name: $folder,
            module: $module,
            go_mod: include_str!(concat!("../../../../tools/", $folder, "/go.mod")),
            go_sum: include_str!(concat!("../../../../tools/", $folder, "/go.sum")),
            main_go: None,
            tags: $tags,
            stamps: &[$($stamp),*],
        }
    };
}

static ETCD: Family = family!("etcd", "go.etcd.io/etcd/server/v3", tags: "", stamps: []);

static KUBERNETES: Family = family!("kubernetes", "k8s.io/kubernetes", tags: "", stamps: [
    "k8s.io/component-base/version.gitVersion={version}",
    "k8s.io/component-base/version.gitMajor={major}",
    "k8s.io/component-base/version.gitMinor={minor}",
    "k8s.io/client-go/pkg/version.gitVersion={version}",
]);

static OLDEST_KUBERNETES: Family = family!("kubernetes-oldest", "k8s.io/kubernetes", tags: "", stamps: [
    "k8s.io/component-base/version.gitVersion={version}",
    "k8s.io/component-base/version.gitMajor={major}",
    "k8s.io/component-base/version.gitMinor={minor}",
]);

static KWOK: Family = family!("kwok", "sigs.k8s.io/kwok", tags: "", stamps: []);

static DESCHEDULER: Family = family!("descheduler", "sigs.k8s.io/descheduler", tags: "", stamps: [
    // It reads its own minor version out of this form.
    "sigs.k8s.io/descheduler/pkg/version.version=v20260601-{version}",
    // It loads a CA file even for http:// and looks for it where only pods have one; a relative path makes it look in
    // its working folder instead.
    "sigs.k8s.io/descheduler/pkg/descheduler/client.K8sPodCAFilePath=prometheus-ca.crt",
]);

// Only Kubernetes service discovery is compiled in: it halves the build.
static PROMETHEUS: Family = family!("prometheus", "github.com/prometheus/prometheus",
    tags: "remove_all_sd,enable_kubernetes_sd", stamps: ["github.com/prometheus/common/version.Version={version}"]);

static KREW: Family = family!("krew", "sigs.k8s.io/krew", tags: "", stamps: []);

static HELM: Family = family!("helm", "helm.sh/helm/v4", tags: "", stamps: []);

static HELM3: Family = family!("helm3", "helm.sh/helm/v3", tags: "", stamps: []);

static OPERATOR_FRAMEWORK: Family =
    family!("operator-framework", "github.com/operator-framework/api", tags: "", stamps: []);

static CONTAINERD: Family = family!("containerd", "github.com/containerd/containerd/v2",
    tags: "no_btrfs,no_aufs,no_devmapper,no_zfs", stamps: ["github.com/containerd/containerd/v2/version.Version={version}"]);

static COREDNS: Family = Family {
    main_go: Some(include_str!("../../../../tools/coredns/main.go")),
    ..family!("coredns", "github.com/coredns/coredns", tags: "", stamps: [])
};

impl Family {
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn module(&self) -> &'static str {
        self.module
    }

    pub(super) fn go_mod(&self) -> &'static str {
        self.go_mod
    }

    pub(super) fn go_sum(&self) -> &'static str {
        self.go_sum
    }

    pub(super) fn main_go(&self) -> Option<&'static str> {
        self.main_go
    }

    /// The pinned version of the family's main module.
    pub(super) fn version(&self) -> &'static str {
        let pinned = |line: &'static str| {
            let mut words = line.trim().trim_start_matches("require ").split_whitespace();
            (words.next() == Some(self.module)).then(|| words.next()).flatten()
        };
        self.go_mod.lines().find_map(pinned).unwrap_or("v0.0.0")
    }

    /// The oldest Go that can build it.
    pub(super) fn go_version(&self) -> &'static str {
        self.go_mod.lines().find_map(|line| line.strip_prefix("go ")).unwrap_or("1.26")
    }

    /// The version, and a hash of everything else that shapes the result, so that no build is ever taken for another.
    pub(super) fn key(&self) -> String {
        let mut hash = Sha256::new();
        let flags = self.build_flags().join(" ");
        for part in [self.go_mod, self.go_sum, &flags].into_iter().chain(self.main_go) {
            hash.update(part);
            hash.update([0]);
        }
        let hash = HEXLOWER.encode(&hash.finalize()[..4]);
        format!("{}-{hash}", self.version())
    }

    pub(super) fn build_flags(&self) -> Vec<String> {
        let version = self.version();
        let mut numbers = version.trim_start_matches('v').split('.');
        let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        let stamps = self.stamps.iter().map(|stamp| {
            let stamp = stamp.replace("{version}", version).replace("{major}", major).replace("{minor}", minor);
            format!(" -X {stamp}")
        });
        let ldflags = stamps.fold("-s -w".to_owned(), |flags, stamp| flags + &stamp);
        let mut flags = vec!["-trimpath".into(), "-buildvcs=false".into(), format!("-ldflags={ldflags}")];
        if !self.tags.is_empty() {
            flags.push(format!("-tags={}", self.tags));
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_a_pinned_version_and_a_package_named_in_its_module_file() {
        for program in Program::ALL {
            let family = program.family();
            assert_ne!(family.version(), "v0.0.0", "{} is not required in go.mod", family.module);
            assert!(family.go_mod.contains(&program.package()), "go.mod has no tool line for {}", program.package());
            assert_eq!(Program::named(program.name()), Some(program));
        }
    }

    #[test]
    fn a_program_is_overridden_by_the_variable_that_envtest_uses() {
        assert_eq!(Program::KubeApiserver.variable(), "TEST_ASSET_KUBE_APISERVER");
        assert_eq!(Program::Etcd.variable(), "TEST_ASSET_ETCD");
    }

    #[test]
    fn stamps_carry_the_pinned_version() {
        let flags = Program::Kubectl.family().build_flags().join(" ");
        let version = Program::Kubectl.version();
        assert!(flags.contains(&format!("component-base/version.gitVersion={version}")), "{flags}");
        assert!(!flags.contains('{'), "{flags}");
    }
}
