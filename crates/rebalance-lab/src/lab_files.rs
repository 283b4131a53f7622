//! The files of the labs of one user: one per lab, by which commands find a lab that another process runs.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail, ensure};
use process::ProcessIdentity;

use crate::{
    lab_file::{LabFile, LabInfo, RunningLab},
    lab_name::option,
};

/// The folder with the files.
#[derive(Debug)]
pub(crate) struct LabFiles(PathBuf);

/// A name that belongs to this process. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct Claim {
    path: PathBuf,
    process: ProcessIdentity,
}

/// What the file of a lab holds.
enum Stored {
    Missing,
    /// A file of a process that has ended, or one that cannot be read.
    Stale,
    Alive(LabFile),
}

impl LabFiles {
    pub(crate) fn of_this_user() -> LabFiles {
        let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
        LabFiles(match given {
            Some(folder) => folder.join("rebalance-lab"),
            None => std::env::temp_dir().join(format!("rebalance-lab-{}", rustix::process::getuid().as_raw())),
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.json"))
    }

    /// Takes a name, unless a lab that runs has it.
    pub(crate) fn claim(&self, name: &str) -> anyhow::Result<Claim> {
        self.create_folder()?;
        let (path, process) = (self.path(name), ProcessIdentity::current()?);
        match read(&path)? {
            Stored::Missing => {}
            Stored::Stale => remove(&path)?,
            Stored::Alive(file) => bail!(
                "a lab called {name} runs already (process {}): end it with `rebalance-lab down{}`, or choose another name \
                 with --name",
                file.process.pid(),
                option(name)
            ),
        }
        let text = serde_json::to_vec(&LabFile { process, lab: None })?;
        match new_file(&path) {
            Ok(mut file) => {
                let claim = Claim { path, process };
                file.write_all(&text).with_context(|| format!("writing {}", claim.path.display()))?;
                Ok(claim)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                bail!("a lab called {name} is being started: choose another name with --name")
            }
            Err(error) => Err(error).with_context(|| format!("writing {}", path.display())),
        }
    }

    /// Creates the folder, and makes sure that nobody else can read or write in it.
    fn create_folder(&self) -> anyhow::Result<()> {
        let folder = self.0.display();
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0).with_context(|| format!("creating {folder}"))?;
        let found = fs::symlink_metadata(&self.0).with_context(|| format!("looking at {folder}"))?;
        let is_ours = found.is_dir() && found.uid() == rustix::process::getuid().as_raw() && found.mode() & 0o077 == 0;
        ensure!(is_ours, "{folder} is not a folder of yours alone: remove it, or set XDG_RUNTIME_DIR");
        Ok(())
    }

    /// The lab of that name, if it is up.
    pub(crate) fn find(&self, name: &str) -> anyhow::Result<RunningLab> {
        let file = self.file(name)?;
        let Some(info) = file.lab else { bail!("lab {name} is still starting; its own output tells how far it is") };
        Ok(RunningLab { name: name.to_owned(), process: file.process, info })
    }

    /// The process of a lab, whether it is up or still starts.
    pub(crate) fn process(&self, name: &str) -> anyhow::Result<ProcessIdentity> {
        Ok(self.file(name)?.process)
    }

    fn file(&self, name: &str) -> anyhow::Result<LabFile> {
        match read(&self.path(name))? {
            Stored::Alive(file) => Ok(file),
            Stored::Missing | Stored::Stale => bail!("{}", self.not_found(name)),
        }
    }

    fn not_found(&self, name: &str) -> String {
        let others: Vec<String> = self.names().into_iter().filter(|other| other != name).collect();
        let hint = match &others[..] {
            [] => format!("start one with `rebalance-lab up{}`", option(name)),
            others => format!("choose one that does with --name: {}", others.join(", ")),
        };
        format!("no lab called {name} runs: {hint}")
    }

    /// The names of the labs that run.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let stem = |entry: fs::DirEntry| Some(entry.file_name().to_str()?.strip_suffix(".json")?.to_owned());
        let mut names: Vec<String> = entries.filter_map(stem).collect();
        names.retain(|name| matches!(read(&self.path(name)), Ok(Stored::Alive(_))));
        names.sort();
        names
    }

    /// Removes the file of a lab that was killed.
    pub(crate) fn remove_stale(&self, name: &str) -> anyhow::Result<()> {
        let path = self.path(name);
        if !matches!(read(&path), Ok(Stored::Missing | Stored::Alive(_))) {
            remove(&path)?;
            let _ = fs::remove_dir(&self.0);
        }
        Ok(())
    }
}

impl Claim {
    /// Writes down that the lab is up.
    pub(crate) fn publish(&self, lab: LabInfo) -> anyhow::Result<()> {
        let text = serde_json::to_vec_pretty(&LabFile { process: self.process, lab: Some(lab) })?;
        let draft = self.draft();
        let _ = fs::remove_file(&draft);
        let written = new_file(&draft).and_then(|mut file| file.write_all(&text));
        written
            .and_then(|()| fs::rename(&draft, &self.path))
            .with_context(|| format!("writing {}", self.path.display()))
    }

    fn draft(&self) -> PathBuf {
        self.path.with_extension("draft")
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(self.draft());
        if let Some(folder) = self.path.parent() {
            // Fails while there are files of other labs.
            let _ = fs::remove_dir(folder);
        }
    }
}

fn new_file(path: &Path) -> io::Result<fs::File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn read(path: &Path) -> anyhow::Result<Stored> {
    match fs::read(path) {
        Ok(bytes) => {
            let file = serde_json::from_slice::<LabFile>(&bytes).ok();
            let alive = file.filter(|file| file.process.is_alive());
            Ok(alive.map_or(Stored::Stale, Stored::Alive))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Stored::Missing),
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

    fn files() -> (tempfile::TempDir, LabFiles) {
        let folder = tempfile::tempdir().unwrap();
        let files = LabFiles(folder.path().join("labs"));
        (folder, files)
    }

    fn info() -> LabInfo {
        LabInfo {
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
        let (_folder, files) = files();
        assert_eq!(
            files.find("lab").unwrap_err().to_string(),
            "no lab called lab runs: start one with `rebalance-lab up`"
        );
        let claim = files.claim("lab").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&files.0), mode(&files.path("lab"))), (0o700, 0o600));
        let refused = files.claim("lab").unwrap_err().to_string();
        assert!(refused.starts_with("a lab called lab runs already (process "), "{refused}");
        assert!(files.find("lab").unwrap_err().to_string().starts_with("lab lab is still starting"));
        claim.publish(info()).unwrap();
        assert_eq!(mode(&files.path("lab")), 0o600);
        assert_eq!(files.find("lab").unwrap().info, info());
        assert_eq!(
            files.find("b").unwrap_err().to_string(),
            "no lab called b runs: choose one that does with --name: lab"
        );
        drop(claim);
        assert!(!files.0.exists());
        files.claim("lab").unwrap();
    }

    #[test]
    fn a_file_of_a_process_that_is_gone_is_replaced_even_if_its_id_is_in_use_again() {
        let (_folder, files) = files();
        drop(files.claim("lab").unwrap());
        DirBuilder::new().mode(0o700).create(&files.0).unwrap();
        let process = ProcessIdentity::current().unwrap();
        let mut other = serde_json::to_value(LabFile { process, lab: Some(info()) }).unwrap();
        other["process"]["started"] = (other["process"]["started"].as_u64().unwrap() + 1).into();
        for text in [other.to_string(), "rubbish".into()] {
            fs::write(files.path("lab"), text).unwrap();
            assert!(files.find("lab").is_err() && files.process("lab").is_err());
            files.remove_stale("lab").unwrap();
            assert!(!files.0.exists());
            drop(files.claim("lab").unwrap());
            DirBuilder::new().mode(0o700).create(&files.0).unwrap();
        }
    }

    #[test]
    fn a_folder_that_others_can_look_into_is_refused() {
        let (_folder, files) = files();
        DirBuilder::new().mode(0o755).create(&files.0).unwrap();
        let refused = files.claim("lab").unwrap_err().to_string();
        assert!(refused.contains("is not a folder of yours alone"), "{refused}");
    }
}
