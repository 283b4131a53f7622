//! Writes what is generated from code, where its readers look for it.

use anyhow::Context;

use crate::{picture, weaknesses};

pub(crate) fn run() -> anyhow::Result<()> {
    let lessons = weaknesses::pages(&crate::root())?;
    let files = api::crd::files().into_iter().chain([advisor::machine::table::page()]).chain(lessons);
    let files = files.chain(advisor::access::files()).chain(advisor::admission::files()).chain(lab::manifests::files());
    let files = files.chain([picture::file(&crate::root())?, advisor::monitoring::page()]);
    for (path, text) in files {
        let file = crate::root().join(path);
        let verb = match std::fs::read_to_string(&file) {
            Ok(current) if current == text => "unchanged",
            Ok(_) => "configured",
            Err(_) => "created",
        };
        let folder = file.parent().unwrap_or(&file);
        let write = || std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, text));
        write().with_context(|| format!("writing {path}"))?;
        println!("{path} {verb}");
    }
    Ok(())
}
