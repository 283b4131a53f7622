//! What every command does with a terminal, a pager and pipes, and how it ends. No cluster is needed for that.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;
use testkit::pty::Pty;

use crate::support::{program, text};

const EXPLAIN: [&str; 2] = ["explain", "load-aware-rebalancing"];

fn run(args: &[&str]) -> Output {
    Command::new(program()).args(args).env_remove("NO_COLOR").env("KUBECONFIG", "/nonexistent").output().unwrap()
}

/// A pager that keeps what it gets, says so, and goes on until a file `go` is there.
fn pager() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pager");
    let here = folder.path().display();
    let script = format!(
        "#!/bin/sh\ncat > '{here}/text'\necho paging\nwhile [ ! -e '{here}/go' ]; do sleep 0.05; done\necho paged\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    (folder, path)
}

/// What the pager gets on a terminal with ten lines.
async fn paged(args: &[&str], env: &[(&str, &str)]) -> String {
    let (folder, pager) = pager();
    fs::write(folder.path().join("go"), "").unwrap();
    let env = [&[("PAGER", pager.to_str().unwrap())], env].concat();
    let mut pty = Pty::spawn(&program(), args, &env, 10, 80);
    pty.wait_for("paged").await;
    assert_eq!(pty.end().await.code(), Some(0));
    fs::read_to_string(folder.path().join("text")).unwrap()
}

#[tokio::test]
async fn a_long_text_goes_through_the_pager_with_colors_unless_they_are_not_wanted() {
    let colored = paged(&EXPLAIN, &[]).await;
    assert!(colored.contains('\u{1b}'), "{colored}");
    assert!(!paged(&EXPLAIN, &[("NO_COLOR", "1")]).await.contains('\u{1b}'));
    assert!(!paged(&[&EXPLAIN[..], &["--color", "never"]].concat(), &[]).await.contains('\u{1b}'));
}

#[tokio::test]
async fn a_text_that_fits_and_a_pager_that_is_missing_need_no_pager() {
    let mut tall = Pty::spawn(&program(), &EXPLAIN, &[("PAGER", "false")], 400, 80);
    tall.wait_for("load-aware-rebalancing").await;
    assert_eq!(tall.end().await.code(), Some(0));
    let mut small = Pty::spawn(&program(), &EXPLAIN, &[("PAGER", "no-such-pager")], 10, 80);
    assert_eq!(small.end().await.code(), Some(0));
    assert!(!small.text().trim().is_empty());
}

#[tokio::test]
async fn ctrl_c_in_the_pager_does_not_leave_it_alone_on_the_terminal() {
    let (folder, pager) = pager();
    let mut pty = Pty::spawn(&program(), &EXPLAIN, &[("PAGER", pager.to_str().unwrap())], 10, 80);
    pty.wait_for("paging").await;
    pty.interrupt();
    fs::write(folder.path().join("go"), "").unwrap();
    pty.wait_for("paged").await;
    assert_eq!(pty.end().await.code(), Some(0));
}

#[test]
fn colors_are_for_terminals_unless_they_are_asked_for() {
    let escapes = |args: &[&str]| text(&run(args).stdout).contains('\u{1b}');
    assert!(!escapes(&EXPLAIN));
    assert!(escapes(&[&EXPLAIN[..], &["--color", "always"]].concat()));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(program()).args(EXPLAIN).stdout(closed).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
}

#[test]
fn a_wrong_command_line_is_told_from_what_was_found() {
    for (args, part) in [
        (&["list", "--as-group", "g"][..], "--as-group needs --as"),
        (&["plan", "load-aware-rebalancing", "--options", "f"][..], "add --draft"),
        (&["status", "-w", "-o", "json"][..], "--watch prints text"),
        (&["list", "--nonsense"][..], "unexpected argument"),
    ] {
        let output = run(args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(part), "{args:?}: {said}");
    }
}

fn kubeconfig(folder: &Path, user: &str) -> String {
    let path = folder.join("kubeconfig");
    let config = format!(
        r#"{{"apiVersion": "v1", "kind": "Config", "current-context": "a",
            "contexts": [{{"name": "a", "context": {{"cluster": "a", "user": "a"}}}}],
            "clusters": [{{"name": "a", "cluster": {{"server": "http://127.0.0.1:9"}}}}],
            "users": [{{"name": "a", "user": {user}}}]}}"#
    );
    fs::write(&path, config).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_context_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&["list", "--kubeconfig", &kubeconfig(folder.path(), "{}"), "--context", "elsewhere"]);
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("elsewhere"), "{said}");
}

#[test]
fn a_login_that_failed_is_no_server_that_is_away() {
    let folder = tempfile::tempdir().unwrap();
    let login = r#"{"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "interactiveMode": "Never",
        "args": ["-c", "echo se''cret; echo no session >&2; exit 1"]}}"#;
    let output = run(&["list", "--kubeconfig", &kubeconfig(folder.path(), login)]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("no session") && said.contains("hint: log in again"), "{said}");
    assert!(!said.contains("secret"), "{said}");
}
