//! Writes what is generated from code, where its readers look for it.

use advisor::monitoring::{AlertSettings, RunbookUrl, alerts::RUNBOOK_URL_VARIABLE};
use anyhow::Context;

use crate::{codeowners, packages, picture, weaknesses};

pub(crate) fn run() -> anyhow::Result<()> {
    let lessons = weaknesses::pages(&crate::root())?;
    let files = api::crd::files().into_iter().chain([advisor::machine::table::page()]).chain(lessons);
    let files = files.chain(advisor::access::files()).chain(advisor::admission::files()).chain(lab::manifests::files());
    let files = files.chain([picture::file(&crate::root())?, advisor::monitoring::page()]);
    let files = files.chain(advisor::monitoring::files(&alert_settings()?));
    let source = packages::Source::new()?;
    let packages = packages::config(&source).into_iter().chain(packages::dist(&source)?);
    let packages = packages.chain([codeowners::file(&source.project.owners)?]);
    let files = files.map(|(path, text)| (path.to_owned(), text)).chain(packages);
    for (path, text) in files {
        write(&path, &text)?;
    }
    for (path, text) in lab::manifests::editable_files() {
        if !crate::root().join(path).exists() {
            write(path, &text)?;
        }
    }
    Ok(())
}

/// Writes a file, by its path from the root of the repository, and says whether that changed it.
pub(crate) fn write(path: &str, text: &str) -> anyhow::Result<()> {
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
    Ok(())
}

/// Distributors lead to their own runbooks by a variable.
pub(crate) fn alert_settings() -> anyhow::Result<AlertSettings> {
    let runbook_url = match std::env::var(RUNBOOK_URL_VARIABLE) {
        Ok(template) => RunbookUrl::new(&template)?,
        Err(_) => RunbookUrl::default(),
    };
    Ok(AlertSettings { runbook_url, ..AlertSettings::default() })
}
