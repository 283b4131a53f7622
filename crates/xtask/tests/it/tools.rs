//! Finding the programs, and what is said when they cannot be had.

use std::{
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

fn tools(args: &[&str], environment: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg("tools").args(args).env_remove("KUBEBUILDER_ASSETS").env_remove("TEST_ASSET_ETCD");
    command.envs(environment.iter().copied()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder with an executable file of that name which does what `script` says.
fn folder_with(name: &str, script: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[test]
fn without_go_one_message_says_what_to_install_or_set() {
    let empty = tempfile::tempdir().unwrap();
    let output = tools(&["etcd"], &[("VIRT_ADVISOR_CACHE", empty.path()), ("PATH", empty.path())]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    for part in ["etcd is needed", "Go was not found", "install Go 1.26", "TEST_ASSET_ETCD", "KUBEBUILDER_ASSETS"] {
        assert!(said.contains(part), "{part:?} is not in:\n{said}");
    }
}

#[test]
fn programs_are_looked_for_in_test_asset_then_kubebuilder_assets_then_the_cache() {
    let (asset, assets) = (folder_with("etcd", ""), folder_with("etcd", ""));
    let asset = asset.path().join("etcd");
    let no_go = tempfile::tempdir().unwrap();
    let path = ("PATH", no_go.path());

    let output =
        tools(&["--paths", "etcd"], &[path, ("TEST_ASSET_ETCD", &asset), ("KUBEBUILDER_ASSETS", assets.path())]);
    assert!(text(&output.stdout).contains(&asset.display().to_string()), "{output:?}");
    let output = tools(&["--paths", "etcd"], &[path, ("KUBEBUILDER_ASSETS", assets.path())]);
    assert!(text(&output.stdout).contains(&assets.path().join("etcd").display().to_string()), "{output:?}");
}

#[test]
fn a_variable_that_points_nowhere_is_an_error_and_not_passed_over() {
    let output = tools(&["etcd"], &[("TEST_ASSET_ETCD", Path::new("/nowhere/etcd"))]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("TEST_ASSET_ETCD is /nowhere/etcd: there is no such file"), "{output:?}");
}

#[test]
fn an_unknown_program_is_an_error_that_lists_the_known_ones() {
    let output = tools(&["etcdd"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("there is no program etcdd; there are etcd, kube-apiserver"), "{output:?}");
}

/// A Go that takes its time and leaves a note of every build, in place of the real one, which takes minutes.
const SLOW_GO: &str = r#"#!/bin/sh
[ "$1" = version ] && exit 0
echo built >> "$BUILDS"
sleep 0.3
while [ "$1" != -o ]; do shift; done
echo program > "$2"
"#;

#[test]
fn builds_that_race_build_once_and_a_later_call_builds_nothing() {
    let (cache, go) = (tempfile::tempdir().unwrap(), folder_with("go", SLOW_GO));
    let builds = cache.path().join("builds");
    let path = format!("{}:{}", go.path().display(), std::env::var("PATH").unwrap());
    let environment = [("VIRT_ADVISOR_CACHE", cache.path()), ("BUILDS", &builds), ("PATH", Path::new(&path))];

    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..3).map(|_| scope.spawn(|| tools(&["etcd"], &environment))).collect();
        assert!(runs.into_iter().all(|run| run.join().unwrap().status.success()));
    });
    let output = tools(&["--paths", "etcd"], &environment);
    assert!(output.stderr.is_empty(), "nothing to say about a build that is there: {output:?}");
    assert_eq!(std::fs::read_to_string(&builds).unwrap(), "built\n");
    let built = text(&output.stdout).split_whitespace().last().unwrap().to_owned();
    assert_eq!(std::fs::read_to_string(&built).unwrap(), "program\n");
    let left: Vec<_> =
        std::fs::read_dir(Path::new(&built).parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "the program and the lock, no half-built folder: {left:?}");
}

#[test]
fn a_build_says_which_of_how_many_it_is_and_about_how_long_it_takes() {
    let (cache, go) = (tempfile::tempdir().unwrap(), folder_with("go", SLOW_GO));
    let builds = cache.path().join("builds");
    let path = format!("{}:{}", go.path().display(), std::env::var("PATH").unwrap());
    let environment = [("VIRT_ADVISOR_CACHE", cache.path()), ("BUILDS", &builds), ("PATH", Path::new(&path))];
    let said = text(&tools(&["etcd", "kube-apiserver", "kubectl"], &environment).stderr);
    let told: Vec<&str> = said.lines().map(|line| line.trim_start_matches("tools: ")).collect();
    let parts = [
        ["3 of 3 programs are not built yet: etcd, kube-apiserver, kubectl;", "takes about 7 min 30 s on two cores"],
        ["building etcd v", "(1 of 3): about 1 min"],
        ["built etcd v", "; about 6 min 30 s for the other 2"],
        ["building kube-apiserver v", "(2 of 3): about 6 min"],
        ["built kube-apiserver v", "; about 30 s for the other 1"],
        ["building kubectl v", "(3 of 3): about 30 s"],
        ["built kubectl v", "(3 of 3) in "],
    ];
    assert_eq!(told.len(), parts.len(), "{said}");
    for (line, [beginning, rest]) in told.iter().zip(parts) {
        assert!(line.starts_with(beginning) && line.contains(rest), "{beginning:?} and {rest:?} are not in {line:?}");
    }
}

#[test]
fn a_failed_build_shows_what_the_compiler_said() {
    let (cache, go) = (
        tempfile::tempdir().unwrap(),
        folder_with("go", "#!/bin/sh\n[ \"$1\" = version ] && exit 0\necho 'main.go:1:1: syntax error' >&2\nexit 2\n"),
    );
    let path = format!("{}:{}", go.path().display(), std::env::var("PATH").unwrap());
    let output = tools(&["etcd"], &[("VIRT_ADVISOR_CACHE", cache.path()), ("PATH", Path::new(&path))]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr)
            .contains("building etcd failed (exit status: 2); the compiler said:\nmain.go:1:1: syntax error"),
        "{output:?}"
    );
}
