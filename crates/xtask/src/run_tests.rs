//! Runs every test program of the workspace, one that waits for API servers beside one that computes.
//!
//! `cargo test` runs one program after another, and leaves the processor idle while a program waits for API servers.

mod schedule;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use devcluster::RunningProgram;
use serde::Deserialize;

use schedule::{Lane, Run, Schedule};

const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// More threads than processors: a test that waits leaves its processor to another.
const LEAST_THREADS: usize = 4;
/// API servers and etcd spend a sixth less of the processor when their garbage collectors run more seldom.
const GOGC: &str = "400";

/// A line that `cargo test --message-format=json` prints.
#[derive(Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    executable: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// A test program that Cargo built.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TestProgram {
    package: String,
    target: String,
    path: PathBuf,
    /// The folder of its package, in which it runs.
    folder: PathBuf,
}

struct Running {
    run: Run,
    program: RunningProgram,
    log: PathBuf,
    start: Instant,
}

struct Finished {
    run: Run,
    log: PathBuf,
    took: Duration,
    status: ExitStatus,
}

pub(crate) async fn run() -> anyhow::Result<()> {
    let programs = build()?;
    // Beside the folder of this program, which Cargo chose.
    let logs = env::current_exe()?.parent().and_then(Path::parent).context("a folder above")?.join("test-logs");
    fs::create_dir_all(&logs)?;
    let start = Instant::now();
    let mut schedule = Schedule::new(&programs);
    let total = schedule.waiting();
    let (mut running, mut finished) = (Vec::<Running>::new(), Vec::<Finished>::new());
    println!("{total} test programs, their output in {}", logs.display());
    loop {
        let lanes: Vec<Lane> = running.iter().map(|running| running.run.lane).collect();
        if let Some(run) = schedule.next(&lanes) {
            let log = logs.join(format!("{}.log", run.title().replace(' ', "-")));
            let args = run.filter.iter().map(|arg| (*arg).to_owned()).collect();
            running.push(spawn(run, args, log)?);
            continue;
        }
        if running.is_empty() {
            break;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        let ended = running.extract_if(.., |running| running.program.exit_status().is_some());
        for done in ended.map(finish).collect::<anyhow::Result<Vec<_>>>()? {
            report(&done, finished.len() + 1, total)?;
            finished.push(done);
        }
    }
    let mut passed_alone = Vec::new();
    for done in finished.iter().filter(|done| !done.status.success() && done.run.lane != Lane::Processor) {
        passed_alone.extend(repeat(done).await?);
    }
    summarize(&finished, &passed_alone, start.elapsed())
}

/// Runs the tests of a program that failed once more, with nothing beside them, and returns those that pass then. It tells a race from a
/// fault, and excuses nothing.
async fn repeat(done: &Finished) -> anyhow::Result<Vec<String>> {
    let failed = failed_tests(&read(&done.log)?);
    if failed.is_empty() {
        return Ok(failed);
    }
    let args = failed.iter().cloned().chain(["--exact".to_owned()]).collect();
    let running = spawn(done.run.clone(), args, done.log.with_extension("again.log"))?;
    while running.program.exit_status().is_none() {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let again = finish(running)?;
    let still = failed_tests(&read(&again.log)?);
    // A program that crashed says of no test that it passes.
    let is_known = again.status.success() || !still.is_empty();
    Ok(failed.into_iter().filter(|name| is_known && !still.contains(name)).collect())
}

/// The output of a program, whatever bytes its tests have printed.
fn read(log: &Path) -> anyhow::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(log)?).into_owned())
}

/// The names below the last `failures:` of a test program.
fn failed_tests(output: &str) -> Vec<String> {
    let Some((_, names)) = output.rsplit_once("\nfailures:\n") else { return Vec::new() };
    names.lines().map_while(|line| line.strip_prefix("    ")).map(str::to_owned).collect()
}

/// Builds what is missing and asks Cargo where the programs are.
fn build() -> anyhow::Result<Vec<TestProgram>> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["test", "--workspace", "--locked", "--lib", "--bins", "--tests", "--no-run"])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(super::root())
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo")?;
    ensure!(output.status.success(), "the tests do not build");
    programs(&String::from_utf8(output.stdout)?)
}

fn programs(messages: &str) -> anyhow::Result<Vec<TestProgram>> {
    let mut found = Vec::new();
    for line in messages.lines() {
        let message: Message = serde_json::from_str(line).with_context(|| format!("what cargo printed: {line}"))?;
        let Message { manifest_path: Some(manifest), executable: Some(path), target: Some(target), .. } = message
        else {
            continue;
        };
        if message.reason != "compiler-artifact" || !message.profile.is_some_and(|profile| profile.test) {
            continue;
        }
        let folder = manifest.parent().unwrap_or(Path::new("/")).to_owned();
        let package = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        found.push(TestProgram { package, target: target.name, path, folder });
    }
    Ok(found)
}

fn spawn(run: Run, chosen: Vec<String>, log: PathBuf) -> anyhow::Result<Running> {
    if log.exists() {
        fs::remove_file(&log)?;
    }
    let threads = env::var("RUST_TEST_THREADS").ok().and_then(|threads| threads.parse().ok());
    let threads =
        threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from).max(LEAST_THREADS));
    // A program that is started beside clusters has no home folder of its own; a test program needs the real one.
    let inherited = |name: &str, default: &str| format!("{name}={}", env::var(name).unwrap_or_else(|_| default.into()));
    let mut args = vec![inherited("HOME", ""), inherited("GOGC", GOGC)];
    if run.lane == Lane::Processor {
        args.extend(["nice", "-n", "19"].map(str::to_owned));
    }
    args.push(run.program.path.display().to_string());
    args.push(format!("--test-threads={threads}"));
    args.extend(chosen);
    let program = RunningProgram::spawn("test", Path::new("/usr/bin/env"), args, &run.program.folder, &log)?;
    println!("       start {}", run.title());
    Ok(Running { run, program, log, start: Instant::now() })
}

fn finish(running: Running) -> anyhow::Result<Finished> {
    let Running { run, program, log, start } = running;
    let status = program.exit_status().context("it has ended")?;
    Ok(Finished { run, log, took: start.elapsed(), status })
}

/// One line for a program that passed, and all of its output for one that failed.
fn report(done: &Finished, number: usize, total: usize) -> anyhow::Result<()> {
    let output = read(&done.log)?;
    let result = if done.status.success() { "ok    " } else { "FAILED" };
    let seconds = done.took.as_secs_f64();
    println!("{result} {number:>2}/{total} {:<28} {seconds:>6.1} s  {}", done.run.title(), counts(&output));
    if !done.status.success() {
        println!("{output}");
    }
    Ok(())
}

/// What a test program says at its end: how many tests passed, failed and were ignored.
fn counts(output: &str) -> String {
    let result = output.lines().rev().find_map(|line| line.strip_prefix("test result: "));
    let counts = result.and_then(|result| result.split_once(". ")).map_or("", |(_, counts)| counts);
    let counts = counts.split("; ").filter(|count| !count.starts_with("0 ") && !count.starts_with("finished"));
    counts
        .filter(|count| !count.ends_with("measured") && !count.ends_with("filtered out"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn summarize(finished: &[Finished], passed_alone: &[String], took: Duration) -> anyhow::Result<()> {
    let failed: Vec<String> =
        finished.iter().filter(|done| !done.status.success()).map(|done| done.run.title()).collect();
    println!("{} test programs in {:.0} s", finished.len(), took.as_secs_f64());
    for name in passed_alone {
        println!("FLAKY  {name}: passes alone, so it has a race or needs more of this machine");
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("failed: {}", failed.join(", "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_in_what_cargo_prints() {
        let messages = [
            r#"{"reason":"compiler-artifact","manifest_path":"/w/crates/api/Cargo.toml","target":{"name":"it"},"profile":{"test":true},"executable":"/t/it-1"}"#,
            r#"{"reason":"compiler-artifact","manifest_path":"/w/crates/xtask/Cargo.toml","target":{"name":"xtask"},"profile":{"test":false},"executable":"/t/xtask"}"#,
            r#"{"reason":"compiler-artifact","manifest_path":"/r/serde/Cargo.toml","target":{"name":"serde"},"profile":{"test":false},"executable":null}"#,
            r#"{"reason":"build-finished","success":true}"#,
        ];
        let found = programs(&messages.join("\n")).unwrap();
        let expected = TestProgram {
            package: "api".into(),
            target: "it".into(),
            path: "/t/it-1".into(),
            folder: "/w/crates/api".into(),
        };
        assert_eq!(found, [expected]);
        assert!(programs("warning: not JSON").is_err());
    }

    #[test]
    fn tests_that_failed_are_found_below_their_output() {
        let output = "test a::b ... FAILED\n\nfailures:\n\n---- a::b stdout ----\n\nfailures:\n    no\n\n\nfailures:\n    a::b\n    c\n\ntest result: FAILED.";
        assert_eq!(failed_tests(output), ["a::b", "c"]);
        assert_eq!(failed_tests("test result: ok."), [""; 0]);
        assert_eq!(failed_tests("killed"), [""; 0], "a program that crashed is not repeated");
    }

    #[test]
    fn the_counts_leave_out_what_is_zero() {
        let output = "test a ... ok\n\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.01s\n\n";
        assert_eq!(counts(output), "3 passed, 1 ignored");
        assert_eq!(counts("killed"), "");
    }
}
