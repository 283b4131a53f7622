//! The one layer of an image: an archive whose bytes follow from the files and the time of the commit.
//!
//! Its headers are those that podman and buildah write, so a layer of theirs has the same digest.

use std::io::Write;

use anyhow::Context;
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use super::{contents::File, digest::Blob};

/// A file that everybody may read and run. Engines write the type of the file into this field, too.
const MODE: u32 = 0o100_755;

#[derive(Debug)]
pub(crate) struct Layer {
    /// The digest of the layer as it is unpacked, by which engines know it.
    pub(crate) diff_id: String,
    pub(crate) unpacked: u64,
    /// The layer as it is stored and pulled.
    pub(crate) packed: Blob,
}

impl Layer {
    pub(crate) fn new(files: &[File], seconds: u64) -> anyhow::Result<Layer> {
        let tar = Blob::new(archive(files, seconds).context("archiving files")?);
        let mut packer = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
        packer.write_all(&tar.bytes)?;
        let packed = Blob::new(packer.finish().context("packing files")?);
        Ok(Layer { diff_id: tar.digest, unpacked: tar.bytes.len() as u64, packed })
    }
}

fn archive(files: &[File], seconds: u64) -> anyhow::Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    for file in files {
        let mut header = Header::new_ustar();
        header.set_path(file.name)?;
        header.set_entry_type(EntryType::Regular);
        header.set_mode(MODE);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(file.bytes.len() as u64);
        header.set_mtime(seconds);
        header.set_device_major(0)?;
        header.set_device_minor(0)?;
        set_checksum(&mut header);
        builder.append(&header, &*file.bytes)?;
    }
    Ok(builder.into_inner()?)
}

/// Six digits, NUL and a space, as Go and GNU tar write it. The crate writes seven digits.
fn set_checksum(header: &mut Header) {
    header.set_cksum();
    if let Ok(sum) = header.cksum() {
        header.as_old_mut().cksum.copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn files() -> Vec<File> {
        let file = |name, text: &str| File { name, bytes: text.as_bytes().to_vec() };
        vec![file("descheduler", "x"), file("rebalance-lab", "#!/bin/true\n")]
    }

    /// The digests are those of the layers that buildah 1.28.2 made of the same files, with `--timestamp`.
    #[test]
    fn a_layer_has_the_bytes_that_an_engine_gives_it() {
        let digest = |files: &[File]| Layer::new(files, 1_700_000_000).unwrap().diff_id;
        assert_eq!(digest(&files()), "sha256:87c762466723e3a6fe409c2f88e0f22c9c274ce909c086d95daf66d015910c59");
        let alone = File { name: "virt-advisor", bytes: b"#!/bin/true\n".to_vec() };
        assert_eq!(digest(&[alone]), "sha256:01435edc8021b1d968bba2a29863407edac6ec544a7003b536b92c932644514f");
    }

    #[test]
    fn only_files_and_time_decide_about_the_digest() {
        let digest = |seconds| Layer::new(&files(), seconds).unwrap().packed.digest;
        assert_eq!(digest(7), digest(7));
        assert_ne!(digest(7), digest(8));
    }

    #[test]
    fn what_is_packed_is_the_archive_and_holds_nothing_else() {
        let layer = Layer::new(&files(), 7).unwrap();
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&*layer.packed.bytes).read_to_end(&mut unpacked).unwrap();
        assert_eq!((Blob::new(unpacked.clone()).digest, unpacked.len() as u64), (layer.diff_id, layer.unpacked));
        let mut found = Vec::new();
        for entry in tar::Archive::new(&*unpacked).entries().unwrap() {
            let mut entry = entry.unwrap();
            let (header, mut text) = (entry.header().clone(), String::new());
            entry.read_to_string(&mut text).unwrap();
            assert_eq!((header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()), (0, 0, 7));
            assert_eq!(header.mode().unwrap() & 0o7777, 0o755);
            found.push((entry.path().unwrap().display().to_string(), text.into_bytes()));
        }
        let expected: Vec<_> = files().into_iter().map(|file| (file.name.to_owned(), file.bytes)).collect();
        assert_eq!(found, expected);
    }
}
