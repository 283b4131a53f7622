//! A control plane to play with.

use devcluster::{Cluster, Component, Descheduler, Identity, Kwok, Prometheus, tools};
use process::Shutdown;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Also run kube-scheduler, the usual controllers, KWOK, Prometheus and the descheduler
    #[arg(long)]
    full: bool,
}

const CONTROLLERS: &[&str] = &[
    "namespace-controller",
    "serviceaccount-controller",
    "garbage-collector-controller",
    "node-lifecycle-controller",
    "disruption-controller",
    "replicaset-controller",
    "deployment-controller",
];

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let mut builder = Cluster::builder();
    let mut components = vec![Component::Etcd, Component::ApiServer];
    if args.full {
        builder = builder
            .scheduler()
            .controllers(CONTROLLERS)
            .kwok(Kwok::default())
            .prometheus(Prometheus::default())
            .descheduler(Descheduler::default());
        components.extend([
            Component::Scheduler,
            Component::ControllerManager,
            Component::Kwok,
            Component::Prometheus,
            Component::Descheduler,
        ]);
    }
    let cluster = builder.start().await?;
    for component in components {
        println!(
            "{:<24} pid {:<8} {:<16} {}",
            component.name(),
            cluster.pid(component)?,
            cluster.address(component)?,
            cluster.log(component)?.display()
        );
    }
    println!();
    stay_up(&cluster, "namespaces").await
}

/// Prints how to reach the cluster and waits for a signal.
pub(crate) async fn stay_up(cluster: &Cluster, worth_seeing: &str) -> anyhow::Result<()> {
    let kubeconfig = cluster.access().kubeconfig(&Identity::Admin).await?;
    let kubectl = tokio::task::spawn_blocking(|| tools::ensure(tools::Program::Kubectl)).await??;
    println!("kubeconfig: {}", kubeconfig.display());
    println!("try:        KUBECONFIG={} {} get {worth_seeing}", kubeconfig.display(), kubectl.display());
    // Before Ctrl-C is announced: it may come at once.
    let shutdown = Shutdown::new()?;
    println!("\nCtrl-C ends it and removes everything it made.");
    shutdown.requested().await;
    Ok(())
}
