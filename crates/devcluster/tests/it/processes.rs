//! Clusters end with whoever owns them and do not get in each other's way. (That SIGKILL of the owner leaves nothing
//! behind is shown with a real owner, in the tests of `xtask`.)

use std::{path::Path, time::Duration};

use devcluster::{
    Cluster, Component, Identity, target,
    tools::{self, Program},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use process::is_alive;
use testkit::eventually;

fn pids(cluster: &Cluster) -> [u32; 2] {
    [Component::Etcd, Component::ApiServer].map(|component| cluster.pid(component).unwrap())
}

#[tokio::test]
async fn two_clusters_start_at_once_and_know_nothing_of_each_other() {
    let (one, two) = futures::try_join!(Cluster::builder().start(), Cluster::builder().start()).unwrap();
    assert_ne!(one.address(Component::ApiServer).unwrap(), two.address(Component::ApiServer).unwrap());

    let namespace = Namespace {
        metadata: ObjectMeta { name: Some("only-in-one".into()), ..Default::default() },
        ..Default::default()
    };
    let in_one: Api<Namespace> = Api::all(one.access().client().await.unwrap());
    let in_two: Api<Namespace> = Api::all(two.access().client().await.unwrap());
    in_one.create(&PostParams::default(), &namespace).await.unwrap();
    assert!(in_two.get_opt("only-in-one").await.unwrap().is_none());

    let pids_of_one = pids(&one);
    let folder_of_one = one.log(Component::Etcd).unwrap().parent().unwrap().to_owned();
    drop(one);
    assert!(pids_of_one.iter().all(|&pid| !is_alive(pid)), "dropping a cluster ends its processes");
    assert!(!folder_of_one.exists(), "dropping a cluster removes its folder");
    in_two.get("default").await.expect("the other cluster goes on");
}

#[tokio::test]
async fn a_panic_of_the_owner_ends_its_processes() {
    let (send, receive) = tokio::sync::oneshot::channel();
    let owner = tokio::spawn(async move {
        let cluster = Cluster::builder().start().await.unwrap();
        send.send(pids(&cluster)).unwrap();
        panic!("on purpose, with a cluster in hand");
    });
    let pids = receive.await.unwrap();
    assert!(owner.await.unwrap_err().is_panic());
    assert!(pids.iter().all(|&pid| !is_alive(pid)));
}

#[tokio::test]
async fn a_running_program_acts_as_somebody_and_ends_when_dropped() {
    let kubectl = tools::ensure(Program::Kubectl).unwrap();
    let script = format!("{} auth whoami; exec sleep 600", kubectl.display());
    let jane = Identity::user("jane", &["team-a"]);
    let program = target().await.unwrap().run(&jane, "whoami", Path::new("sh"), &["-c", &script]).await.unwrap();
    eventually("it says who it is", async || program.log_tail().contains("jane").then_some(())).await;
    assert_eq!(program.exit_status(), None, "it goes on");
    let pid = program.pid();
    drop(program);
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_running_program_that_is_asked_to_end_tells_how_it_ended() {
    let access = target().await.unwrap();
    let script = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.1; done";
    let program = access.run(&Identity::Admin, "polite", Path::new("sh"), &["-c", script]).await.unwrap();
    eventually("it is ready", async || program.log_tail().contains("ready").then_some(())).await;
    let status = program.stop(Duration::from_secs(60)).await.unwrap();
    assert_eq!(status.and_then(|status| status.code()), Some(7));
}
