//! The files that virt-higher-density puts on worker nodes, executed: the script in a root directory of its own, with a `swapon` that
//! only notes what it is asked, so that no swap of this machine changes; and judged by the programs that know such files.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

use crate::commands::{printed, root, text};

const PAYLOAD: &str = "crates/advisor/src/profiles/higher_density/payload";
const UNITS: [&str; 2] = ["swap-provision.service", "cgroup-system-slice-config.service"];
const PARTITION: &str = "/dev/disk/by-partlabel/CNV_SWAP";

/// Every script that people or nodes run.
const SCRIPTS: [&str; 6] = [
    "crates/advisor/src/profiles/higher_density/payload/find-swap-partition",
    "config/lab/setup-kind-env.sh",
    "config/lab/test-closed-loop.sh",
    "setup-kind-env.sh",
    "test-closed-loop.sh",
    "tools/check-prerequisites",
];

/// Runs the rest of its arguments in the root directory that comes first, with programs of this machine and one of its devices.
const ENTER: &str = r#"
folder=$0 device=$1
shift
mount --rbind /usr "$folder/usr"
[ -z "$device" ] || mount --bind "$device" "$folder/dev/swap-partition"
exec chroot "$folder" /usr/bin/env -i PATH=/stubs:/usr/sbin:/usr/bin "$@"
"#;

/// The root directory of a node, as far as the script sees it.
struct Node {
    folder: TempDir,
    device: Option<PathBuf>,
}

impl Node {
    fn new() -> Node {
        let folder = tempfile::tempdir().unwrap();
        for name in ["etc", "usr", "proc", "stubs", "dev/disk/by-partlabel"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        for name in ["bin", "sbin", "lib", "lib64"] {
            symlink(format!("usr/{name}"), folder.path().join(name)).unwrap();
        }
        let node = Node { folder, device: None };
        node.write("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n");
        node.write("calls", "");
        let script = fs::read_to_string(root().join(PAYLOAD).join("find-swap-partition")).unwrap();
        node.program("etc/find-swap-partition", &script);
        for name in ["swapon", "swapoff"] {
            node.program(&format!("stubs/{name}"), &format!("#!/bin/sh\necho \"{name} $*\" >> /calls\n"));
        }
        node
    }

    fn with_partition(self) -> Node {
        self.write("dev/swap-partition", "");
        symlink("../../swap-partition", self.path(PARTITION)).unwrap();
        self
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join(inside.trim_start_matches('/'))
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn program(&self, name: &str, text: &str) {
        self.write(name, text);
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn list_as_swap(&self) {
        self.write(
            "proc/swaps",
            "Filename\tType\tSize\tUsed\tPriority\n/dev/swap-partition partition\t16777212\t0\t-2\n",
        );
    }

    fn run(&self, command: &[&str]) -> Output {
        let mut enter = Command::new("unshare");
        enter.args(["--map-root-user", "--mount", "sh", "-ec", ENTER]).arg(self.folder.path());
        enter.arg(self.device.as_deref().unwrap_or(Path::new(""))).args(command).output().unwrap()
    }

    /// What the script says and does: its last line, and the calls of `swapon` and `swapoff`.
    fn start(&self) -> (String, String) {
        let output = self.run(&["/etc/find-swap-partition"]);
        printed(&output);
        (text(&output.stderr), self.calls())
    }

    fn stop(&self) -> String {
        let unit = fs::read_to_string(root().join(PAYLOAD).join(UNITS[0])).unwrap();
        let line = unit.lines().find_map(|line| line.strip_prefix("ExecStop=")).unwrap().replace("$$", "$");
        printed(&self.run(&["sh", "-c", &line]));
        self.calls()
    }

    fn calls(&self) -> String {
        let calls = fs::read_to_string(self.path("calls")).unwrap();
        self.write("calls", "");
        calls
    }
}

#[test]
fn the_script_turns_swap_on_once_and_leaves_a_node_without_the_partition_alone() {
    let (said, calls) = Node::new().start();
    assert!(said.contains("not found: this node runs without swap"), "{said}");
    assert_eq!(calls, "");

    let node = Node::new().with_partition();
    let (said, calls) = node.start();
    assert_eq!(said, format!("Enabling swap on {PARTITION}\n"));
    assert_eq!(calls, format!("swapon {PARTITION}\n"));

    node.list_as_swap();
    let (said, calls) = node.start();
    assert_eq!((said, calls), (format!("Swap already enabled on {PARTITION}\n"), String::new()));
}

#[test]
fn a_swapon_that_fails_fails_the_unit() {
    let node = Node::new().with_partition();
    node.program("stubs/swapon", "#!/bin/sh\necho 'swapon failed: Invalid argument' >&2\nexit 255\n");
    let output = node.run(&["/etc/find-swap-partition"]);
    assert_eq!(output.status.code(), Some(255));
    assert!(text(&output.stderr).contains("Invalid argument"));
}

#[test]
fn stopping_the_unit_turns_off_what_it_turned_on_and_nothing_else() {
    let node = Node::new().with_partition();
    assert_eq!(node.stop(), "", "it is off already");
    node.list_as_swap();
    assert_eq!(node.stop(), "swapoff /dev/swap-partition\n");
    assert_eq!(Node::new().stop(), "", "there is no partition");
}

/// A loop device that ends with its owner.
struct Loop {
    device: PathBuf,
    _file: tempfile::NamedTempFile,
}

impl Loop {
    fn new() -> Loop {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, vec![0; 1 << 20]).unwrap();
        let output = Command::new("losetup").args(["--find", "--show"]).arg(file.path()).output().unwrap();
        Loop { device: printed(&output).trim().into(), _file: file }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let ended = Command::new("losetup").arg("--detach").arg(&self.device).status();
        assert!(ended.is_ok_and(|status| status.success()), "{} is still in use", self.device.display());
    }
}

#[test]
#[ignore = "needs root, loop devices and util-linux: run `make test-swap`"]
fn the_script_offers_a_real_swap_partition_to_swapon() {
    let disk = Loop::new();
    printed(&Command::new("mkswap").arg(&disk.device).output().unwrap());
    let mut node = Node::new().with_partition();
    node.device = Some(disk.device.clone());
    // As the real one does, it reads the signature, and it stops there.
    let swapon = "#!/bin/sh -e\n[ -b \"$1\" ]\nblkid --probe --match-tag TYPE --output value \"$1\" >> /calls\n";
    node.program("stubs/swapon", swapon);
    assert_eq!(node.start(), (format!("Enabling swap on {PARTITION}\n"), "swap\n".to_owned()));
}

#[test]
#[ignore = "needs shellcheck: run `make test-swap`"]
fn shellcheck_finds_nothing_in_the_scripts() {
    let output = Command::new("shellcheck").arg("--").args(SCRIPTS).current_dir(root()).output();
    printed(&output.expect("shellcheck is not installed: apt install shellcheck, dnf install ShellCheck"));
}

#[test]
#[ignore = "needs systemd-analyze, of systemd 250 or newer: run `make test-swap`"]
fn systemd_finds_nothing_in_the_units() {
    let node = Node::new();
    for folder in ["etc/systemd/system", "usr/bin", "usr/lib/systemd/system"] {
        fs::create_dir_all(node.path(folder)).unwrap();
    }
    for target in ["sysinit", "basic", "shutdown"] {
        node.write(&format!("usr/lib/systemd/system/{target}.target"), "[Unit]\nDescription=As on every machine\n");
    }
    // Systemd checks that they are there and executable.
    for program in ["systemctl", "env"] {
        node.program(&format!("usr/bin/{program}"), "");
    }
    for unit in UNITS {
        fs::copy(root().join(PAYLOAD).join(unit), node.path("etc/systemd/system").join(unit)).unwrap();
    }
    let verify = || {
        let folder = format!("--root={}", node.folder.path().display());
        let output = Command::new("systemd-analyze").args(["verify", &folder]).args(UNITS).output();
        let output = output.expect("systemd-analyze is not installed: it comes with systemd");
        text(&output.stdout) + &text(&output.stderr) + if output.status.success() { "" } else { "failed" }
    };
    assert_eq!(verify(), "", "neither errors nor warnings");
    fs::remove_file(node.path("etc/find-swap-partition")).unwrap();
    assert!(verify().contains("/etc/find-swap-partition is not executable"), "it looks at what the unit starts");
}
