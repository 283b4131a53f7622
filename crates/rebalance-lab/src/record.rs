//! How commands find a lab that another process runs: a small file per name, for this user alone.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail, ensure};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use lab::{connect, survey::Sources, up::Part};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

const LONGEST_NAME: usize = 40;

/// Which lab is meant.
#[derive(clap::Args)]
pub(crate) struct Name {
    /// The name of the lab
    #[arg(long, default_value = "lab", value_parser = name)]
    pub(crate) name: String,
}

/// It becomes part of a path.
fn name(text: &str) -> Result<String, String> {
    let is_good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if text.is_empty() || text.len() > LONGEST_NAME || !text.chars().all(is_good) || text.starts_with('-') {
        return Err(format!("expected at most {LONGEST_NAME} lowercase letters, digits and hyphens, such as lab-2"));
    }
    Ok(text.to_owned())
}

/// A process that cannot be mistaken for a later one with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Being {
    pid: i32,
    /// When it started, in the kernel's own unit.
    started: u64,
}

impl Being {
    fn this() -> anyhow::Result<Being> {
        let pid = std::process::id().try_into().context("reading our process id")?;
        let started = started(pid).context("there is no /proc to read when this process started")?;
        Ok(Being { pid, started })
    }

    pub(crate) fn is_alive(self) -> bool {
        started(self.pid) == Some(self.started)
    }

    /// Asks it to end. Not an error if it has.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.is_alive()) else { return Ok(()) };
        kill_process(pid, Signal::TERM).with_context(|| format!("asking process {} to end", self.pid))
    }
}

/// When a process started; none if it is gone, or only waits to be buried.
fn started(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name, which may hold anything.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    being: Being,
    /// None while it starts.
    lab: Option<Running>,
}

/// All that others need to know of a lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Running {
    pub(crate) kubeconfig: PathBuf,
    pub(crate) prometheus: String,
    pub(crate) time_scale: f64,
    pub(crate) parts: Vec<Part>,
    pub(crate) policy: Option<PathBuf>,
    pub(crate) journal: PathBuf,
}

/// A lab that was found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) being: Being,
    pub(crate) running: Running,
}

impl Found {
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        let path = self.running.kubeconfig.display();
        let read = Kubeconfig::read_from(&self.running.kubeconfig).with_context(|| format!("reading {path}"))?;
        let mut config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
        // It is on this machine.
        config.proxy_url = None;
        connect::client(config, connect::LAB).context("making a client for the lab")
    }

    pub(crate) async fn sources(&self) -> anyhow::Result<Sources> {
        let Running { prometheus, time_scale, parts, policy, journal, .. } = self.running.clone();
        let client = self.client().await?;
        Ok(Sources { lab: self.name.clone(), time_scale, client, prometheus, parts, policy, journal })
    }
}

/// The records of one user.
#[derive(Debug)]
pub(crate) struct Records(PathBuf);

/// A name that is ours. The record goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    path: PathBuf,
    being: Being,
}

impl Records {
    pub(crate) fn of_this_user() -> Records {
        let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
        Records(match given {
            Some(folder) => folder.join("rebalance-lab"),
            None => std::env::temp_dir().join(format!("rebalance-lab-{}", rustix::process::getuid().as_raw())),
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.json"))
    }

    /// Takes a name, unless a lab that lives has it.
    pub(crate) fn claim(&self, name: &str) -> anyhow::Result<Claim> {
        let folder = self.0.display();
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0).with_context(|| format!("creating {folder}"))?;
        let found = fs::symlink_metadata(&self.0).with_context(|| format!("looking at {folder}"))?;
        let is_ours = found.is_dir() && found.uid() == rustix::process::getuid().as_raw() && found.mode() & 0o077 == 0;
        ensure!(is_ours, "{folder} is not a folder of yours alone: remove it, or set XDG_RUNTIME_DIR");
        let (path, being) = (self.path(name), Being::this()?);
        if let Some(record) = read(&path)? {
            ensure!(
                !record.being.is_alive(),
                "a lab called {name} runs already (process {}): end it with `rebalance-lab down{}`, or choose another name \
                 with --name",
                record.being.pid,
                option(name)
            );
            remove(&path)?;
        }
        let claim = Claim { path, being };
        let text = serde_json::to_vec(&Record { being, lab: None })?;
        let written = new_file(&claim.path).and_then(|mut file| file.write_all(&text));
        match written {
            // Whoever was faster keeps it.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                std::mem::forget(claim);
                bail!("a lab called {name} is being started: choose another name with --name")
            }
            written => written.with_context(|| format!("writing {}", claim.path.display()))?,
        }
        Ok(claim)
    }

    /// The lab of that name, as soon as it is up.
    pub(crate) fn find(&self, name: &str) -> anyhow::Result<Found> {
        let Some(record) = self.record(name)? else { bail!("{}", self.nothing(name)) };
        let Some(running) = record.lab else {
            bail!("lab {name} is still starting; its own output tells how far it is")
        };
        Ok(Found { name: name.to_owned(), being: record.being, running })
    }

    /// The process of a lab, whether it is up or still starts.
    pub(crate) fn being(&self, name: &str) -> anyhow::Result<Being> {
        match self.record(name)? {
            Some(record) => Ok(record.being),
            None => bail!("{}", self.nothing(name)),
        }
    }

    fn record(&self, name: &str) -> anyhow::Result<Option<Record>> {
        Ok(read(&self.path(name))?.filter(|record| record.being.is_alive()))
    }

    fn nothing(&self, name: &str) -> String {
        let others: Vec<String> = self.names().into_iter().filter(|other| other != name).collect();
        let hint = match &others[..] {
            [] => format!("start one with `rebalance-lab up{}`", option(name)),
            others => format!("choose one that does with --name: {}", others.join(", ")),
        };
        format!("no lab called {name} runs: {hint}")
    }

    /// Those that live.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let stem = |entry: fs::DirEntry| Some(entry.file_name().to_str()?.strip_suffix(".json")?.to_owned());
        let mut names: Vec<String> = entries.filter_map(stem).collect();
        names.retain(|name| self.record(name).is_ok_and(|record| record.is_some()));
        names.sort();
        names
    }

    /// Removes what a lab left behind that was killed.
    pub(crate) fn sweep(&self, name: &str) -> anyhow::Result<()> {
        let path = self.path(name);
        match read(&path) {
            Ok(Some(record)) if record.being.is_alive() => Ok(()),
            Ok(None) => Ok(()),
            _ => {
                remove(&path)?;
                let _ = fs::remove_dir(&self.0);
                Ok(())
            }
        }
    }
}

/// How to name a lab on the command line; nothing for the usual one.
pub(crate) fn option(name: &str) -> String {
    if name == "lab" { String::new() } else { format!(" --name {name}") }
}

impl Claim {
    /// Says that the lab is up.
    pub(crate) fn publish(&self, lab: Running) -> anyhow::Result<()> {
        let text = serde_json::to_vec_pretty(&Record { being: self.being, lab: Some(lab) })?;
        let draft = self.path.with_extension("draft");
        let _ = fs::remove_file(&draft);
        let written = new_file(&draft).and_then(|mut file| file.write_all(&text));
        written
            .and_then(|()| fs::rename(&draft, &self.path))
            .with_context(|| format!("writing {}", self.path.display()))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(self.path.with_extension("draft"));
        if let Some(folder) = self.path.parent() {
            // Stays as long as there are others.
            let _ = fs::remove_dir(folder);
        }
    }
}

fn new_file(path: &Path) -> io::Result<fs::File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// What a file says; none if there is none. A record that cannot be read is one of a lab that is gone: nobody else writes there.
fn read(path: &Path) -> anyhow::Result<Option<Record>> {
    match fs::read(path) {
        Ok(bytes) => {
            Ok(serde_json::from_slice(&bytes).ok().or(Some(Record { being: Being { pid: 0, started: 0 }, lab: None })))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn records() -> (tempfile::TempDir, Records) {
        let folder = tempfile::tempdir().unwrap();
        let records = Records(folder.path().join("labs"));
        (folder, records)
    }

    fn running() -> Running {
        Running {
            kubeconfig: "k".into(),
            prometheus: "http://p".into(),
            time_scale: 2.0,
            parts: Vec::new(),
            policy: None,
            journal: "j".into(),
        }
    }

    #[test]
    fn a_name_is_taken_once_and_free_again_when_the_lab_is_gone() {
        let (_folder, records) = records();
        assert_eq!(
            records.find("lab").unwrap_err().to_string(),
            "no lab called lab runs: start one with `rebalance-lab up`"
        );
        let claim = records.claim("lab").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&records.0), mode(&records.path("lab"))), (0o700, 0o600));
        let refused = records.claim("lab").unwrap_err().to_string();
        assert!(refused.starts_with("a lab called lab runs already (process "), "{refused}");
        assert!(records.find("lab").unwrap_err().to_string().starts_with("lab lab is still starting"));
        claim.publish(running()).unwrap();
        assert_eq!(mode(&records.path("lab")), 0o600);
        assert_eq!(records.find("lab").unwrap().running, running());
        assert_eq!(
            records.find("b").unwrap_err().to_string(),
            "no lab called b runs: choose one that does with --name: lab"
        );
        drop(claim);
        assert!(!records.0.exists());
        records.claim("lab").unwrap();
    }

    #[test]
    fn a_record_of_a_process_that_is_gone_is_replaced_even_if_its_id_is_in_use_again() {
        let (_folder, records) = records();
        drop(records.claim("lab").unwrap());
        fs::create_dir(&records.0).unwrap();
        fs::set_permissions(&records.0, fs::Permissions::from_mode(0o700)).unwrap();
        let this = Being::this().unwrap();
        let other = Being { started: this.started + 1, ..this };
        for text in [serde_json::to_string(&Record { being: other, lab: Some(running()) }).unwrap(), "rubbish".into()] {
            fs::write(records.path("lab"), text).unwrap();
            assert!(!other.is_alive() && records.find("lab").is_err() && records.being("lab").is_err());
            other.end().unwrap();
            records.sweep("lab").unwrap();
            assert!(!records.0.exists());
            drop(records.claim("lab").unwrap());
            DirBuilder::new().mode(0o700).create(&records.0).unwrap();
        }
    }

    #[test]
    fn a_folder_that_others_can_look_into_is_refused() {
        let (_folder, records) = records();
        DirBuilder::new().mode(0o755).create(&records.0).unwrap();
        let refused = records.claim("lab").unwrap_err().to_string();
        assert!(refused.contains("is not a folder of yours alone"), "{refused}");
    }

    #[test]
    fn names_are_plain() {
        for good in ["lab", "lab-2", "7"] {
            assert!(name(good).is_ok(), "{good}");
        }
        for bad in ["", "../lab", "Lab", "a b", "-a", "a/b", &"a".repeat(41)] {
            assert!(name(bad).is_err(), "{bad}");
        }
    }
}
