//! What other commands need to know of a running lab, and how they reach it.

use std::path::PathBuf;

use anyhow::Context;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use kube_io::connect;
use lab::{survey::Sources, up::Part};
use process::ProcessIdentity;
use serde::{Deserialize, Serialize};

/// The content of the file that a lab is found by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LabFile {
    pub(crate) process: ProcessIdentity,
    /// None while the lab starts.
    pub(crate) lab: Option<LabInfo>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LabInfo {
    pub(crate) kubeconfig: PathBuf,
    pub(crate) prometheus: String,
    pub(crate) time_scale: f64,
    pub(crate) parts: Vec<Part>,
    pub(crate) policy: Option<PathBuf>,
    pub(crate) journal: PathBuf,
}

/// A lab that is up.
#[derive(Debug, Clone)]
pub(crate) struct RunningLab {
    pub(crate) name: String,
    pub(crate) process: ProcessIdentity,
    pub(crate) info: LabInfo,
}

impl RunningLab {
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        let path = self.info.kubeconfig.display();
        let read = Kubeconfig::read_from(&self.info.kubeconfig).with_context(|| format!("reading {path}"))?;
        let mut config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
        // The lab is on this machine.
        config.proxy_url = None;
        connect::retrying_client(config, lab::COMPONENT).context("making a client for the lab")
    }

    pub(crate) async fn sources(&self) -> anyhow::Result<Sources> {
        let LabInfo { prometheus, time_scale, parts, policy, journal, .. } = self.info.clone();
        let client = self.client().await?;
        Ok(Sources { lab: self.name.clone(), time_scale, client, prometheus, parts, policy, journal })
    }
}
