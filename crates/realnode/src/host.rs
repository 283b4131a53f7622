//! What a node must not change of the machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};

/// Values below these change by themselves, or say what is in use.
const VOLATILE: [&str; 7] = [
    "kernel/random",
    "kernel/ns_last_pid",
    "kernel/pty/nr",
    "kernel/perf_event_max_sample_rate",
    "net/netfilter/nf_conntrack_count",
    "net/ipv4/neigh",
    "net/ipv6",
];

/// What the machine looked like at one time.
#[derive(Debug, PartialEq, Eq)]
pub struct Host {
    /// Mounts, links, routes, packet filter rules, cgroups and namespaces of processes, each with what kind of thing it is.
    things: BTreeSet<(&'static str, String)>,
    settings: BTreeMap<PathBuf, Vec<u8>>,
}

impl Host {
    pub fn read() -> anyhow::Result<Host> {
        let mut things = BTreeSet::new();
        let mut add = |kind, lines: Vec<String>| things.extend(lines.into_iter().map(|line| (kind, line)));
        add("mount", lines(&fs::read_to_string("/proc/self/mounts")?));
        add("link", printed("ip", &["-o", "link", "show"])?.iter().filter_map(|line| link(line)).collect());
        add("route", printed("ip", &["-4", "route", "show", "table", "all"])?);
        add("rule for routes", printed("ip", &["-4", "rule", "show"])?);
        for program in ["iptables-save", "ip6tables-save"] {
            let rules = printed(program, &[])?;
            add(
                "packet filter rule",
                rules.iter().filter(|line| !line.starts_with('#')).map(|line| uncounted(line)).collect(),
            );
        }
        add("cgroup", cgroups()?);
        add("process namespace", process_namespaces()?);
        let mut settings = BTreeMap::new();
        for part in ["kernel", "net", "vm"] {
            read_settings(&Path::new("/proc/sys").join(part), &mut settings);
        }
        Ok(Host { things, settings })
    }

    /// What is different later, one line each.
    pub fn changes(&self, later: &Host) -> Vec<String> {
        let gone = self.things.difference(&later.things).map(|(kind, thing)| format!("{kind} is gone: {thing}"));
        let new = later.things.difference(&self.things).map(|(kind, thing)| format!("{kind} is new: {thing}"));
        // A kernel module that was loaded meanwhile brings new settings, which were nowhere before.
        let set = self.settings.iter().filter_map(|(path, value)| {
            let now = later.settings.get(path).filter(|now| *now != value)?;
            let [value, now] = [value, now].map(|value| String::from_utf8_lossy(value).trim().to_owned());
            Some(format!("setting has changed: {} was {value} and is {now}", path.display()))
        });
        gone.chain(new).chain(set).collect()
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

fn printed(program: &str, args: &[&str]) -> anyhow::Result<Vec<String>> {
    let output = Command::new(program).args(args).output().with_context(|| format!("starting {program}"))?;
    ensure!(output.status.success(), "{program} failed ({})", output.status);
    Ok(lines(&String::from_utf8_lossy(&output.stdout)))
}

/// The name of a link, from a line `2: eth0@if3: <…> …`.
fn link(line: &str) -> Option<String> {
    line.split_whitespace().nth(1).map(str::to_owned)
}

/// A line of iptables-save without the counters of packets.
fn uncounted(line: &str) -> String {
    line.split(" [").next().unwrap_or(line).to_owned()
}

/// The topmost ones of every hierarchy. Those below them come and go with other programs.
fn cgroups() -> anyhow::Result<Vec<String>> {
    let folders = |path: &Path| -> anyhow::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(path).with_context(|| format!("reading {}", path.display()))?.flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        Ok(folders.map(|entry| entry.path()).collect())
    };
    let root = Path::new("/sys/fs/cgroup");
    let mut found = folders(root)?;
    // Version 1 has a folder for each hierarchy, version 2 is one hierarchy.
    if !root.join("cgroup.controllers").exists() {
        found = found.iter().map(|hierarchy| folders(hierarchy)).collect::<Result<Vec<_>, _>>()?.concat();
    }
    Ok(found.iter().map(|path| path.display().to_string()).collect())
}

/// Namespaces in which there are processes.
fn process_namespaces() -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir("/proc").context("reading /proc")?.flatten();
    // A process that has ended meanwhile is in none.
    let namespaces = entries.filter_map(|entry| fs::read_link(entry.path().join("ns/pid")).ok());
    Ok(namespaces.map(|namespace| namespace.display().to_string()).collect())
}

/// Reads settings of the kernel. Some can only be written.
fn read_settings(path: &Path, settings: &mut BTreeMap<PathBuf, Vec<u8>>) {
    if VOLATILE.iter().any(|part| path.ends_with(part)) {
        return;
    }
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().for_each(|entry| read_settings(&entry.path(), settings)),
        Err(_) => settings.extend(fs::read(path).map(|value| (path.to_owned(), value)).ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(things: &[(&'static str, &str)], swappiness: &str) -> Host {
        Host {
            things: things.iter().map(|(kind, thing)| (*kind, (*thing).to_owned())).collect(),
            settings: BTreeMap::from([("/proc/sys/vm/swappiness".into(), swappiness.as_bytes().to_vec())]),
        }
    }

    #[test]
    fn everything_that_is_new_gone_or_different_is_told() {
        let before = host(&[("link", "lo:"), ("route", "default via 10.0.0.1")], "60\n");
        assert!(before.changes(&host(&[("link", "lo:"), ("route", "default via 10.0.0.1")], "60\n")).is_empty());
        let changes = before.changes(&host(&[("link", "lo:"), ("link", "cni0:")], "10\n"));
        assert_eq!(
            changes,
            [
                "route is gone: default via 10.0.0.1",
                "link is new: cni0:",
                "setting has changed: /proc/sys/vm/swappiness was 60 and is 10",
            ]
        );
    }
}
