//! `rebalance-lab logs`: what a part of a running lab says.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
    time::Duration,
};

use anyhow::{Context, bail};
use lab::up::Part;
use process::ProcessIdentity;
use terminal::print;

use crate::{lab_files::LabFiles, lab_name::LabName};

const POLL_INTERVAL: Duration = Duration::from_millis(200);
const CHUNK: u64 = 1 << 16;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The part: kube-apiserver, prometheus, descheduler, vm-controller ...
    part: String,
    /// Go on as there is more, until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    name: LabName,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let lab = LabFiles::of_this_user().find(&args.name.name)?;
    let part = choose(&lab.info.parts, &args.part)?;
    show(&part.log, args.follow.then_some(lab.process))
}

/// Finds a part by its name, with or without `kube-`.
fn choose<'a>(parts: &'a [Part], name: &str) -> anyhow::Result<&'a Part> {
    let is = |part: &&Part| part.name == name || part.name.strip_prefix("kube-") == Some(name);
    let Some(part) = parts.iter().find(is) else {
        let known: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        bail!("there is no part {name}; the parts are {}", known.join(", "))
    };
    Ok(part)
}

/// Prints a file: to its end, or with a writer for as long as that process runs.
fn show(log: &Path, writer: Option<ProcessIdentity>) -> anyhow::Result<()> {
    let doing = || format!("reading {}", log.display());
    let mut at = 0;
    loop {
        let is_alive = writer.is_some_and(ProcessIdentity::is_alive);
        match File::open(log) {
            Ok(mut file) => loop {
                file.seek(SeekFrom::Start(at)).with_context(doing)?;
                let mut bytes = Vec::new();
                let read = (&mut file).take(CHUNK).read_to_end(&mut bytes).with_context(doing)?;
                at += read as u64;
                if read == 0 {
                    break;
                }
                print(&String::from_utf8_lossy(&bytes))?;
            },
            // Nothing was logged yet.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(doing),
        }
        if !is_alive {
            return Ok(());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use lab::up::Check;

    use super::*;

    #[test]
    fn a_part_is_found_by_its_name_and_others_are_listed() {
        let part = |name: &str| Part { name: name.into(), place: String::new(), log: "l".into(), check: Check::Task };
        let parts = [part("kube-apiserver"), part("descheduler")];
        for name in ["kube-apiserver", "apiserver", "descheduler"] {
            assert!(choose(&parts, name).is_ok(), "{name}");
        }
        let problem = choose(&parts, "kubelet").unwrap_err().to_string();
        assert_eq!(problem, "there is no part kubelet; the parts are kube-apiserver, descheduler");
    }
}
