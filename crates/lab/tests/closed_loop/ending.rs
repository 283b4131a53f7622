//! The shutdown of a lab whose parts hang, with watches that are still open.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use devcluster::Component;
use lab::up::{Lab, Options};
use process::is_alive;
use tokio::time::timeout;

use crate::observer::Observer;

const TIMEOUT: Duration = Duration::from_secs(180);
/// The limit includes the timeouts of requests without an answer and of processes that have to be killed.
const END: Duration = Duration::from_secs(25);

#[tokio::test(flavor = "multi_thread")]
async fn a_lab_ends_soon_although_its_descheduler_hangs_and_nobody_answers() {
    let lab = Lab::start(Options::default(), |_| {}).await.unwrap();
    let mut states = lab.descheduler().unwrap();
    let pid = timeout(TIMEOUT, states.wait_for(|state| state.pid.is_some())).await.unwrap().unwrap().pid.unwrap();
    let others =
        [Component::Etcd, Component::ApiServer, Component::Prometheus].map(|one| lab.cluster().pid(one).unwrap());
    let folder = lab.folder().to_owned();
    let _watches = Observer::start(&lab).await;

    halt(pid);
    lab.cluster().pause(Component::ApiServer).unwrap();
    let began = Instant::now();
    lab.shutdown().await;
    assert!(began.elapsed() < END, "it took {:?}", began.elapsed());
    for pid in others.into_iter().chain([pid]) {
        assert!(!is_alive(pid), "process {pid} is left behind");
    }
    assert!(!folder.exists(), "{} is left behind", folder.display());
}

/// A stopped process does not handle SIGTERM.
fn halt(pid: u32) {
    assert!(Command::new("kill").args(["-STOP", &pid.to_string()]).status().unwrap().success());
}
