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

use super::{Program, estimate, say};
use crate::{
    error::{Context, Error, Result},
    kill_on_exit,
};

const PROGRESS_EVERY: Duration = Duration::from_secs(15);
const LOCK_POLL: Duration = Duration::from_millis(100);

/// Builds `program`, the `number`th of the `missing` ones, unless another process has built it before we hold the lock.
/// `arch`: for Linux on an architecture that is not this machine's.
pub(super) fn build(
    program: Program,
    path: &Path,
    number: usize,
    missing: &[Program],
    arch: Option<&str>,
) -> Result<PathBuf> {
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
        if let Some(main_go) = program.family().main_go() {
            fs::write(aside.join("main.go"), main_go)?;
        }
        fs::write(aside.join("go.sum"), program.family().go_sum())
    };
    prepare().context(|| format!("preparing the build in {}", aside.display()))?;

    let (name, version) = (program.name(), program.version());
    let position = format!("{number} of {}", missing.len());
    say(format_args!("building {name} {version} ({position}): about {}", duration(program.build_time())));
    let start = Instant::now();
    go_build(program, &go, &aside, &position, arch)?;
    fs::rename(aside.join(name), path).context(|| format!("moving {name} to {}", path.display()))?;
    let _ = fs::remove_dir_all(&aside);
    let left = match missing.get(number..).unwrap_or_default() {
        [] => String::new(),
        left => format!("; about {} for the other {}", duration(estimate(left)), left.len()),
    };
    say(format_args!("built {name} {version} ({position}) in {}{left}", duration(start.elapsed())));
    Ok(path.to_owned())
}

fn lock(path: &Path, program: Program) -> Result<File> {
    let start = Instant::now();
    let mut last_said = None;
    let mut lock = || -> io::Result<File> {
        let file = File::create(path)?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
            if last_said.is_none_or(|said: Instant| said.elapsed() >= PROGRESS_EVERY) {
                last_said = Some(Instant::now());
                let family = program.family().name();
                say(format_args!("waiting for another build of {family}, {}", duration(start.elapsed())));
            }
            thread::sleep(LOCK_POLL);
        }
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
fn go_build(program: Program, go: &Path, folder: &Path, position: &str, arch: Option<&str>) -> Result<()> {
    let mut args = vec!["build".to_owned(), "-v".into(), "-o".into(), program.name().into()];
    args.extend(program.family().build_flags());
    args.push(program.package());

    let child = kill_on_exit::spawn(go, &args, |command| {
        command
            .current_dir(folder)
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off")
            .envs(arch.map(|_| ("GOOS", "linux")))
            .envs(arch.map(|arch| ("GOARCH", arch)))
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
    let (mut downloads, mut packages, mut output) = (0, 0, Vec::new());
    loop {
        match lines.recv_timeout(PROGRESS_EVERY) {
            Ok(line) if line.starts_with("go: downloading") => downloads += 1,
            Ok(line) if is_package(&line) => packages += 1,
            Ok(line) => output.push(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if last_said.elapsed() >= PROGRESS_EVERY {
            last_said = Instant::now();
            let done = match packages {
                0 => format!("{downloads} modules downloaded"),
                _ => format!("{packages} packages compiled"),
            };
            let (elapsed, whole) = (duration(start.elapsed()), duration(program.build_time()));
            say(format_args!("  {} ({position}): {done}, {elapsed} of about {whole}", program.name()));
        }
    }
    if let Some(reader) = reader {
        let _ = reader.join();
    }
    let status = child.wait().context(|| "waiting for `go build`".into())?;
    kill_on_exit::forget(child.id());
    match status.success() {
        true => Ok(()),
        false => Err(Error::Build { program: program.name(), status, output: output.join("\n") }),
    }
}

fn is_package(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#') && !line.contains([' ', ':', '\t'])
}

pub(super) fn duration(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds if seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}
