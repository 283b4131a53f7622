//! What the advisor needs in the lab: its own definition and those of third parties, their objects, and the stand-in for the
//! machine config operator. The advisor itself creates the KubeDescheduler.

use std::{path::Path, time::Duration};

use devcluster::{Cluster, Identity};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};
use standins::machine_config::{self, MachineConfigPool, MachineConfigSettings};

use crate::{Error, error::Context};

const DEFINITIONS: [&str; 4] = [
    include_str!("../../../../config/crd/third-party/machineconfig.yaml"),
    include_str!("../../../../config/crd/third-party/machineconfigpool.yaml"),
    include_str!("../../../../config/crd/third-party/machineconfiguration.yaml"),
    include_str!("../../../../config/crd/third-party/hyperconverged-v1beta1.yaml"),
];

const PLATFORM: [&str; 5] = [
    include_str!("../../../../config/samples/third-party/namespaces.yaml"),
    include_str!("../../../../config/samples/third-party/hyperconverged.yaml"),
    include_str!("../../../../config/samples/third-party/machineconfigs.yaml"),
    include_str!("../../../../config/samples/third-party/machineconfigpools.yaml"),
    include_str!("../../../../config/samples/third-party/machineconfiguration.yaml"),
];
const STATUS: &str = include_str!("../../../../config/samples/third-party/status.yaml");

const TIMEOUT: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const WORKER_POOL: &str = "worker";

pub(super) async fn definitions(cluster: &Cluster) -> Result<(), Error> {
    let mut definitions = vec![api::crd::virt_platform_config(), api::crd::virt_platform_plan_record()];
    for text in DEFINITIONS {
        let definition: CustomResourceDefinition = serde_saphyr::from_str(text)
            .map_err(|error| Error::Asset(format!("reading a definition of others: {error}")))?;
        definitions.push(definition);
    }
    Ok(cluster.access().install_crds(&definitions).await?)
}

/// Uses kubectl, which applies objects of every kind.
pub(super) async fn platform(cluster: &Cluster, folder: &Path) -> Result<(), Error> {
    apply(cluster, folder, &PLATFORM.join("\n---\n"), &[]).await?;
    apply(cluster, folder, STATUS, &["--subresource=status"]).await
}

async fn apply(cluster: &Cluster, folder: &Path, text: &str, how: &[&str]) -> Result<(), Error> {
    let file = folder.join("platform.yaml");
    std::fs::write(&file, text).map_err(|error| Error::Asset(format!("writing {}: {error}", file.display())))?;
    let path = file.display().to_string();
    let args = [&["apply", "--server-side", "--force-conflicts", "-f", &path], how].concat();
    let output = cluster.access().kubectl(&Identity::Admin, &args).await?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(Error::Asset(format!("applying the platform that the advisor works on: {}", words.trim())))
}

/// Starts the stand-in for the machine config operator, and waits until all machines are updated.
pub(super) async fn machine_config_operator(
    client: Client,
    nodes: u32,
    time_scale: f64,
) -> Result<machine_config::StandIn, Error> {
    let pools: Api<MachineConfigPool> = Api::all(client.clone());
    let defaults = MachineConfigSettings::default();
    let settings = MachineConfigSettings {
        reboot: defaults.reboot.div_f64(time_scale),
        // A reboot of some seconds stands for one of a minute. Drains are as much faster.
        drain: defaults.drain.faster(20.0 * time_scale),
        ..defaults
    };
    let stand_in = machine_config::StandIn::start(client, settings);
    let updated = async {
        loop {
            let pool = pools.get(WORKER_POOL).await.context(|| format!("reading MachineConfigPool {WORKER_POOL}"))?;
            let status = pool.status.unwrap_or_default();
            let counts = [status.machine_count, status.updated_machine_count, status.ready_machine_count];
            if counts.iter().all(|count| i64::from(*count) == i64::from(nodes)) {
                return Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    match tokio::time::timeout(TIMEOUT, updated).await {
        Ok(result) => result.map(|()| stand_in),
        Err(_) => Err(Error::Late { what: format!("all machines of pool {WORKER_POOL} are updated"), after: TIMEOUT }),
    }
}
