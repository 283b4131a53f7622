//! Builds one program aside and moves it into the cache, safe against any number of others doing the same.

use std::{
    fs::{self, File, TryLockError},
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use super::{Program, say};
use crate::{
    error::{Context, Error, Result},
    leash,
};

const PROGRESS_EVERY: Duration = Duration::from_secs(15);

/// Builds `program` unless somebody else has done so by the time we hold the family's lock.
pub(super) fn build(program: Program, path: &Path, position: &str) -> Result<PathBuf> {
    let go = find_go(program)?;
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).context(|| format!("creating the cache folder {}", folder.display()))?;
    let _lock = lock(&folder.join(".lock"), program)?;
    if path.is_file() {
        return Ok(path.to_owned());
    }
    // We hold the lock: what lies here is left over from a build that was killed.
    let aside = folder.join(".build");
    let prepare = || {
        if aside.exists() {
            fs::remove_dir_all(&aside)?;
        }
        fs::create_dir(&aside)?;
        fs::write(aside.join("go.mod"), program.family().go_mod())?;
        fs::write(aside.join("go.sum"), program.family().go_sum())
    };
    prepare().context(|| format!("preparing the build in {}", aside.display()))?;

    let (name, version) = (program.name(), program.version());
    say(format_args!("building {name} {version} ({position})"));
    let start = Instant::now();
    go_build(program, &go, &aside)?;
    fs::rename(aside.join(name), path).context(|| format!("moving {name} to {}", path.display()))?;
    let _ = fs::remove_dir_all(&aside);
    say(format_args!("built {name} {version} in {}", duration(start.elapsed())));
    Ok(path.to_owned())
}

fn lock(path: &Path, program: Program) -> Result<File> {
    let lock = || -> io::Result<File> {
        let file = File::create(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                say(format_args!("waiting for another build of {}", program.family().name()));
                file.lock()?;
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        Ok(file)
    };
    lock().context(|| format!("locking {}", path.display()))
}

fn find_go(program: Program) -> Result<PathBuf> {
    let works = Command::new("go").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    match works {
        Ok(status) if status.success() => Ok("go".into()),
        _ => Err(Error::GoMissing {
            program: program.name(),
            variable: program.variable(),
            go: program.family().go_version(),
        }),
    }
}

/// Runs the compiler. With `-v` it names each package that it compiles: the count is our progress, the rest its errors.
fn go_build(program: Program, go: &Path, folder: &Path) -> Result<()> {
    let mut args = vec!["build".to_owned(), "-v".into(), "-o".into(), program.name().into()];
    args.extend(program.family().build_flags());
    args.push(program.package());

    let child = leash::spawn(go, &args, |command| {
        command
            .current_dir(folder)
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off")
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
    });
    let mut child = child.context(|| "starting `go build`".into())?;
    let (sender, lines) = mpsc::channel();
    let reader = child.stderr.take().map(|stderr| {
        thread::spawn(move || {
            BufReader::new(stderr).lines().map_while(io::Result::ok).for_each(|line| {
                let _ = sender.send(line);
            })
        })
    });

    let start = Instant::now();
    let mut last_said = start;
    let (mut packages, mut output) = (0, Vec::new());
    loop {
        match lines.recv_timeout(PROGRESS_EVERY) {
            Ok(line) if line.starts_with("go: downloading") => {}
            Ok(line) if is_package(&line) => packages += 1,
            Ok(line) => output.push(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if last_said.elapsed() >= PROGRESS_EVERY {
            last_said = Instant::now();
            let elapsed = duration(start.elapsed());
            say(format_args!("  {}: {packages} packages compiled, {elapsed}", program.name()));
        }
    }
    if let Some(reader) = reader {
        let _ = reader.join();
    }
    let status = child.wait().context(|| "waiting for `go build`".into())?;
    leash::free(child.id());
    match status.success() {
        true => Ok(()),
        false => Err(Error::Build { program: program.name(), status, output: output.join("\n") }),
    }
}

fn is_package(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#') && !line.contains([' ', ':', '\t'])
}

fn duration(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}
