//! Clusters end with whoever owns them and do not get in each other's way. (That SIGKILL of the owner leaves nothing
//! behind is shown with a real owner, in the tests of `xtask`.)

use devcluster::{Cluster, Component};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};

fn is_alive(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

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
