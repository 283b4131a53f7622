//! The program as `/usr/bin/gather`, started as `oc adm must-gather` starts it in the image of `Dockerfile.must-gather`.

use std::os::unix::fs::symlink;

use devcluster::Identity;

use super::{VERSION, program, run_as, site, text};
use crate::guide::terminal::root;

fn instructions(name: &str) -> Vec<String> {
    let file = std::fs::read_to_string(root().join("Dockerfile.must-gather")).unwrap();
    let named = file.lines().filter_map(|line| line.strip_prefix(name)).map(|rest| rest.trim().to_owned());
    named.collect()
}

/// What is started without an own command: the entry point of the image, which is the command of must-gather, too.
fn command_line() -> Vec<String> {
    let entry = instructions("ENTRYPOINT");
    assert_eq!((entry.len(), instructions("CMD").len()), (1, 0));
    serde_json::from_str(&entry[0]).unwrap()
}

#[test]
fn the_image_has_a_shell_and_the_program_under_the_name_that_is_started() {
    assert_eq!(command_line(), ["/usr/bin/gather"]);
    assert_eq!(instructions("COPY"), ["--from=operator /virt-advisor /usr/bin/gather"]);
    let stages = instructions("FROM");
    assert_eq!(stages, ["${OPERATOR_IMAGE} AS operator", "${BASE_IMAGE}"]);
    let operator = std::fs::read_to_string(root().join("Dockerfile")).unwrap();
    assert!(operator.contains("COPY virt-advisor /\n"), "where the image of the operator has it");
    assert!(
        !operator.contains("must-gather") && !operator.contains("/gather"),
        "an image without a shell does not claim it"
    );
}

#[tokio::test]
async fn started_as_must_gather_starts_it_files_are_where_it_copies_them_from() {
    let folder = tempfile::tempdir().unwrap();
    let line = command_line();
    let gather = folder.path().join(line[0].trim_start_matches('/'));
    std::fs::create_dir_all(gather.parent().unwrap()).unwrap();
    symlink(program(), &gather).unwrap();
    let target = folder.path().join("must-gather");
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("gather.logs"), "must-gather itself writes here").unwrap();
    // As in its pod: a shell runs something in the background, then the command, then syncs. The variable stands for the root
    // directory of the container.
    let script = format!("sleep 0 & {}{}; sync", folder.path().display(), line.join(" "));
    let args = ["-c", &script];
    let output = run_as(
        site().await.cluster.access(),
        &Identity::Admin,
        std::path::Path::new("bash"),
        &args,
        &[("BASE_COLLECTION_PATH", &target)],
    )
    .await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let version = std::fs::read_to_string(target.join("version")).unwrap();
    assert_eq!(version, format!("virt-advisor\n{VERSION}\n"));
    let config = "cluster-scoped-resources/advisor.kubevirt.io/virtplatformconfigs/example-profile.yaml";
    assert!(target.join(config).is_file() && target.join("gather.logs").is_file());
}

#[tokio::test]
async fn logs_go_back_as_far_as_must_gather_was_told() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    let cluster = &site().await.cluster;
    let client = cluster.access().client().await.unwrap();
    let start = cluster.audit().position(&client).await.unwrap();
    let since = std::path::Path::new("2h0m0s");
    let args = ["gather", "-o", target.to_str().unwrap()];
    let output = run_as(cluster.access(), &Identity::Admin, &program(), &args, &[("MUST_GATHER_SINCE", since)]).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let all = cluster.audit().since(start, &client).await.unwrap();
    let logs: Vec<_> = all.iter().filter(|request| request.subresource == "log").map(|request| &request.uri).collect();
    assert!(logs.iter().any(|uri| uri.contains("&sinceSeconds=7200")), "{logs:?}");
}
