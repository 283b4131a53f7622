//! An image as one file, written without a container engine: a folder in OCI's layout, as an archive.

use std::io::{self, Write};

use tar::{Builder, EntryType, Header};

use super::{
    arch::Arch,
    oci::{Documents, LAYOUT, blob_path},
    reference::ImageReference,
};

/// Writes the archive. Its bytes follow from the image, its name and the time.
pub(crate) fn write(
    image: &Documents,
    reference: &ImageReference,
    arch: Arch,
    seconds: u64,
    to: impl Write,
) -> anyhow::Result<()> {
    let mut builder = Builder::new(to);
    let mut add = |name: &str, bytes: &[u8]| append(&mut builder, name, bytes, seconds);
    add("oci-layout", LAYOUT.as_bytes())?;
    add("index.json", &image.index(reference, arch)?)?;
    add("manifest.json", &image.docker_manifest(reference)?)?;
    for blob in image.blobs() {
        add(&blob_path(blob), &blob.bytes)?;
    }
    builder.into_inner()?.flush()?;
    Ok(())
}

fn append(builder: &mut Builder<impl Write>, name: &str, bytes: &[u8], seconds: u64) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(bytes.len() as u64);
    header.set_mtime(seconds);
    builder.append_data(&mut header, name, bytes)
}
