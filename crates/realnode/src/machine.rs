//! Makes of fresh namespaces a machine on which a kubelet can run, and which shares nothing with the real one.

use std::{fs, net::Ipv4Addr, path::Path, process::Command};

use anyhow::{Context, ensure};
use rustix::{
    mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change},
    system::sethostname,
};

use crate::{NAME, prerequisites::find};

/// The address of the node, on a bridge without ports. Nothing else is on that network.
pub(crate) const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 250, 0, 2);
const LINK: &str = "node0";

/// The range of Services that the control plane has.
const SERVICES: &str = "10.0.0.0/24";

/// Settings of the whole machine, and the values that a kubelet wants. It writes them where it sees others.
const WANTED: [(&str, &str); 6] = [
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/keys/root_maxbytes", "25000000"),
];

pub(crate) fn prepare(folder: &Path) -> anyhow::Result<()> {
    sethostname(NAME.as_bytes()).context("setting the host name")?;
    mounts(folder)?;
    network()
}

fn mounts(folder: &Path) -> anyhow::Result<()> {
    // Mounts of the kubelet are to be seen in containers; nothing of it is seen outside of the namespace.
    let shared = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
    mount_change("/", shared).context("sharing mounts with containers")?;
    // Sockets of containerd, network namespaces, device plugins and addresses of pods have fixed places in here.
    for hidden in ["/run", "/var/lib"] {
        mount("tmpfs", hidden, "tmpfs", MountFlags::empty(), None).with_context(|| format!("hiding {hidden}"))?;
    }
    let logs = folder.join("log");
    fs::create_dir(&logs)?;
    mount_bind(&logs, "/var/log").context("hiding /var/log")?;
    for (name, value) in WANTED {
        let (file, setting) = (folder.join(name.replace('/', ".")), Path::new("/proc/sys").join(name));
        fs::write(&file, format!("{value}\n"))?;
        mount_bind(&file, &setting).with_context(|| format!("hiding {}", setting.display()))?;
    }
    Ok(())
}

fn network() -> anyhow::Result<()> {
    let address = format!("{ADDRESS}/30");
    ip(&["link", "set", "lo", "up"])?;
    ip(&["link", "add", LINK, "type", "bridge"])?;
    ip(&["address", "add", &address, "dev", LINK])?;
    ip(&["link", "set", LINK, "up"])?;
    // A route is looked up before kube-proxy puts the address of a pod in the place of that of a Service.
    ip(&["route", "add", SERVICES, "dev", LINK])?;
    for setting in ["net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables"] {
        let path = Path::new("/proc/sys").join(setting);
        fs::write(&path, "1\n").with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn ip(args: &[&str]) -> anyhow::Result<()> {
    let output = Command::new(find("ip")?).args(args).output().context("starting ip")?;
    ensure!(output.status.success(), "ip {} failed: {}", args.join(" "), String::from_utf8_lossy(&output.stderr));
    Ok(())
}
