//! Where the collected files go: a folder, or one archive. The same files give the same archive, byte for byte.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use flate2::{Compression, GzBuilder};
use jiff::Timestamp;

/// The files by their paths.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Output {
    Folder(PathBuf),
    Tar(PathBuf),
    TarGz(PathBuf),
}

impl Output {
    pub(crate) fn of(path: PathBuf) -> Self {
        let name = path.to_string_lossy().to_lowercase();
        match name {
            name if name.ends_with(".tar") => Output::Tar(path),
            name if name.ends_with(".tar.gz") || name.ends_with(".tgz") => Output::TarGz(path),
            _ => Output::Folder(path),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Output::Folder(path) | Output::Tar(path) | Output::TarGz(path) => path,
        }
    }

    /// Refuses to mix with what is there already. Called before anything is collected.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let path = self.path();
        match self {
            Output::Folder(_) => {
                let is_empty = fs::read_dir(path).map_or(true, |mut entries| entries.next().is_none());
                ensure!(is_empty && !path.is_file(), "{} is there already: name a new folder with -o", path.display());
            }
            Output::Tar(_) | Output::TarGz(_) => {
                ensure!(!path.exists(), "{} is there already: name another file with -o", path.display());
            }
        }
        Ok(())
    }

    pub(crate) fn write(&self, files: &Files, time: Timestamp) -> anyhow::Result<()> {
        let path = self.path();
        let written = match self {
            Output::Folder(folder) => write_folder(folder, files),
            Output::Tar(_) => private_file(path).and_then(|file| tar(file, &root(path), files, time).map(drop)),
            Output::TarGz(_) => private_file(path).and_then(|file| {
                let packer = GzBuilder::new().write(file, Compression::default());
                tar(packer, &root(path), files, time)?.finish().map(drop)
            }),
        };
        written.with_context(|| format!("writing {}", path.display()))
    }
}

/// What was collected is for its owner to hand on.
fn private_file(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// The name of the archive without its ending: everything in it is in a folder of this name.
fn root(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let is_ending = |ending: &&str| name.to_lowercase().ends_with(ending);
    let ending = [".tar.gz", ".tgz", ".tar"].iter().find(|ending| is_ending(ending)).map_or(0, |ending| ending.len());
    name[..name.len() - ending].to_owned()
}

fn write_folder(folder: &Path, files: &Files) -> io::Result<()> {
    for (path, content) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, content)?;
    }
    Ok(())
}

fn tar<W: Write>(writer: W, root: &str, files: &Files, time: Timestamp) -> io::Result<W> {
    let mut archive = tar::Builder::new(writer);
    for (path, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(u64::try_from(time.as_second()).unwrap_or_default());
        archive.append_data(&mut header, format!("{root}/{path}"), content.as_slice())?;
    }
    archive.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Files {
        let long = format!("{}/{}.yaml", "namespaces".repeat(12), "n".repeat(90));
        [("b/two.txt".to_owned(), b"2".to_vec()), ("a.txt".to_owned(), b"1".to_vec()), (long, Vec::new())].into()
    }

    #[test]
    fn the_ending_of_the_name_decides_what_is_written() {
        for (name, expected) in [
            ("out", Output::Folder("out".into())),
            ("out.d", Output::Folder("out.d".into())),
            ("out.tar", Output::Tar("out.tar".into())),
            ("out.tar.gz", Output::TarGz("out.tar.gz".into())),
            ("out.TGZ", Output::TarGz("out.TGZ".into())),
        ] {
            assert_eq!(Output::of(name.into()), expected);
        }
    }

    #[test]
    fn the_same_files_give_the_same_archive_sorted_and_owned_by_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let time = Timestamp::from_second(1_700_000_000).unwrap();
        let [one, two] = ["x/case.tar.gz", "y/case.tar.gz"].map(|name| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            Output::of(path.clone()).write(&files(), time).unwrap();
            fs::read(path).unwrap()
        });
        assert_eq!(one, two);
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(one.as_slice()));
        let entries: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                assert_eq!(
                    (header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()),
                    (0, 0, 1_700_000_000)
                );
                entry.path().unwrap().to_string_lossy().into_owned()
            })
            .collect();
        let expected: Vec<_> = files().keys().map(|path| format!("case/{path}")).collect();
        assert_eq!(entries, expected);
    }

    #[test]
    fn nothing_that_is_there_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let time = Timestamp::UNIX_EPOCH;
        for name in ["out", "out.tar", "out.tgz"] {
            let output = Output::of(folder.path().join(name));
            output.check().unwrap();
            output.write(&files(), time).unwrap();
            let said = output.check().unwrap_err().to_string();
            assert!(said.contains("is there already"), "{said}");
        }
        fs::create_dir(folder.path().join("empty")).unwrap();
        Output::of(folder.path().join("empty")).check().unwrap();
        assert_eq!(fs::read(folder.path().join("out/b/two.txt")).unwrap(), b"2");
    }
}
