//! Which engine builds an image, and how it is called. The engines here only say that.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Output};

use tempfile::TempDir;

use super::{dummy, xtask};
use crate::commands::{printed, root, text};

const LABELS: &str = "--label=org.opencontainers.image.created=2023-11-14T22:13:20Z \
    --label=org.opencontainers.image.licenses=Apache-2.0 \
    --label=org.opencontainers.image.source=https://github.com/virt-advisor/virt-advisor";

/// A folder with programs of these names that only say how they were called. There is no git among them, so no commit.
fn engines(names: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        let file = folder.path().join(name);
        fs::write(&file, "#!/bin/sh\necho \"${0##*/} $*\"\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

fn image(engines: &TempDir, args: &[&str]) -> Output {
    let target = engines.path().join("target");
    let mut command = xtask(&target, args);
    command.env("PATH", engines.path()).env("TEST_ASSET_DESCHEDULER", dummy(engines.path()));
    command.output().unwrap()
}

/// The folder that an engine builds from.
fn context(engines: &TempDir, title: &str) -> String {
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    engines.path().join("target/images/context").join(format!("{title}-{arch}")).display().to_string()
}

/// How an engine is called, with a program that was built before.
fn built(engines: &TempDir, args: &[&str]) -> String {
    let program = dummy(engines.path());
    let output = image(engines, &[&["image-build", "--program", &program], args].concat());
    printed(&output).lines().next().unwrap().to_owned()
}

#[test]
fn the_image_is_built_with_the_engine_that_is_there() {
    let version = concat!("v", env!("CARGO_PKG_VERSION"));
    let name = format!("kubevirt.io/virt-advisor-operator:{version}");
    let title = |title| format!("--label=org.opencontainers.image.title={title}");
    let labels = |name| format!("{LABELS} {} --label=org.opencontainers.image.version={version}", title(name));
    let operator = labels("virt-advisor-operator");
    for (names, args, expected) in [
        (&["buildah", "docker", "podman"][..], &[][..], format!("podman build --tag {name} --timestamp=1700000000")),
        (&["buildah", "docker"], &[], format!("docker build --tag {name}")),
        (&["buildah"], &[], format!("buildah build --tag {name} --timestamp=1700000000")),
        (&["docker", "podman"], &["--tool", "docker", "--image", "me/it:v1"], "docker build --tag me/it:v1".to_owned()),
    ] {
        let engines = engines(names);
        let context = context(&engines, "virt-advisor-operator");
        assert_eq!(built(&engines, args), format!("{expected} {operator} {context}"));
    }
    let podman = engines(&["podman"]);
    let lab = built(&podman, &["--lab"]);
    assert!(lab.starts_with(&format!("podman build --tag kubevirt.io/rebalance-lab:{version} ")), "{lab}");
    assert!(lab.ends_with(&format!("{} {}", labels("rebalance-lab"), context(&podman, "rebalance-lab"))), "{lab}");
}

#[test]
fn the_engine_finds_what_the_dockerfile_copies_with_mode_and_time() {
    let podman = engines(&["podman"]);
    for (args, title, dockerfile, names) in [
        (&[][..], "virt-advisor-operator", "Dockerfile", &["virt-advisor"][..]),
        (&["--lab"], "rebalance-lab", "Dockerfile.lab", &["descheduler", "rebalance-lab"]),
    ] {
        built(&podman, args);
        let folder = context(&podman, title);
        let folder = Path::new(&folder);
        assert_eq!(fs::read(folder.join("Dockerfile")).unwrap(), fs::read(root().join(dockerfile)).unwrap());
        for name in names {
            let metadata = fs::metadata(folder.join(name)).unwrap();
            assert_eq!(metadata.permissions().mode() & 0o7777, 0o755, "{name}");
            let time = metadata.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
            assert_eq!(time.as_secs(), 1_700_000_000, "{name}");
        }
        assert_eq!(fs::read_dir(folder).unwrap().count(), names.len() + 1);
    }
}

#[test]
fn the_image_for_must_gather_is_built_from_that_of_the_operator() {
    let podman = engines(&["podman"]);
    let version = concat!("v", env!("CARGO_PKG_VERSION"));
    let said = |args: &[&str]| {
        let said = printed(&image(&podman, &[&["image-must-gather"], args].concat()));
        said.rsplit_once(' ').unwrap().0.to_owned()
    };
    let file = "podman build --file Dockerfile.must-gather --tag";
    assert_eq!(
        said(&[]),
        format!(
            "{file} kubevirt.io/virt-advisor-must-gather:{version} \
             --build-arg=OPERATOR_IMAGE=kubevirt.io/virt-advisor-operator:{version}"
        )
    );
    let args = ["--image", "me/gather:v1", "--operator-image", "me/it", "--base-image", "me/base@sha256:0a"];
    let expected = "me/gather:v1 --build-arg=OPERATOR_IMAGE=me/it:latest --build-arg=BASE_IMAGE=me/base@sha256:0a";
    assert_eq!(said(&args), format!("{file} {expected}"));
}

#[test]
fn an_image_is_pushed_by_its_name() {
    let podman = engines(&["podman"]);
    let pushed = printed(&image(&podman, &["image-push", "--image", "me/it:v1"]));
    assert_eq!(pushed, "podman push me/it:v1\n");
}

#[test]
fn without_an_engine_one_line_says_what_to_install_and_what_needs_none() {
    for (args, expected) in [
        (
            &["image-build"][..],
            "error: none of podman, docker, buildah is installed: install one, name another with CONTAINER_TOOL, or write \
             the image as a file, which needs none: make image-archive\n",
        ),
        (
            &["image-push", "--tool", "nerdctl"],
            "error: nerdctl is not installed: install it, or leave CONTAINER_TOOL out\n",
        ),
    ] {
        let output = image(&engines(&[]), args);
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(1), expected));
    }
}
