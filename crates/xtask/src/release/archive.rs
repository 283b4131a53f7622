//! Archives that are the same whenever and by whomever they are made.

use anyhow::Context;
use flate2::{Compression, GzBuilder};

/// Files as a compressed archive: name, content, and whether it is a program.
pub(super) fn packed(mut files: Vec<(String, Vec<u8>, bool)>) -> anyhow::Result<Vec<u8>> {
    files.sort();
    let mut archive = tar::Builder::new(GzBuilder::new().mtime(0).write(Vec::new(), Compression::best()));
    for (name, content, is_program) in &files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(if *is_program { 0o755 } else { 0o644 });
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, name, content.as_slice()).with_context(|| format!("packing {name}"))?;
    }
    Ok(archive.into_inner()?.finish()?)
}
