//! Reads everything that a survey needs, concurrently.

use std::{path::PathBuf, time::Duration};

use futures::future::join_all;
use jiff::Timestamp;
use kube::{Api, Client, api::ListParams};
use kube_io::{HttpClient, Login, answer_within, prometheus::PrometheusClient, within_deadline};
use tokio::net::TcpStream;

use super::{
    PartState, Survey,
    assemble::{Read, SIGNALS, assemble},
};
use crate::{
    COMPONENT,
    soft_tainter::LowNodeUtilization,
    up::{Check, Part, journal},
};

const TIMEOUT: Duration = Duration::from_secs(3);
const READY: &str = "ready";

/// Where to read from.
#[derive(Clone)]
#[allow(missing_debug_implementations, reason = "a client has none")]
pub struct Sources {
    pub lab: String,
    pub time_scale: f64,
    pub client: Client,
    pub prometheus: String,
    pub parts: Vec<Part>,
    /// The file with the descheduler's policy. It may not exist yet.
    pub policy: Option<PathBuf>,
    pub journal: PathBuf,
}

/// Reads the state of a lab. What cannot be read is among the problems of the survey.
pub async fn take(sources: &Sources) -> Survey {
    let policy = sources.policy.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
    let plugin = policy.and_then(|text| LowNodeUtilization::of(&text));
    let query = plugin.as_ref().map(|plugin| plugin.query.clone());
    let signals = format!("{{__name__=~\"{}\"}}", SIGNALS.join("|"));
    let scored = async {
        match &query {
            Some(query) => Some(query_prometheus(&sources.prometheus, query).await),
            None => None,
        }
    };
    let (parts, nodes, vms, signals, scores) = tokio::join!(
        join_all(sources.parts.iter().map(check)),
        list(Api::all(sources.client.clone()), "nodes"),
        list(Api::all(sources.client.clone()), "VirtualMachines"),
        query_prometheus(&sources.prometheus, &signals),
        scored,
    );
    let file = sources.journal.display();
    assemble(Read {
        lab: sources.lab.clone(),
        taken: Timestamp::now(),
        time_scale: sources.time_scale,
        parts,
        nodes,
        vms,
        signals,
        plugin,
        scores,
        migrations: journal::read(&sources.journal).map_err(|problem| format!("reading {file}: {problem}")),
    })
}

async fn list<K>(api: Api<K>, what: &str) -> Result<Vec<K>, String>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let found = answer_within(TIMEOUT, format!("listing {what}"), api.list(&ListParams::default())).await;
    found.map(|found| found.items).map_err(|problem| problem.to_string())
}

async fn query_prometheus(url: &str, query: &str) -> Result<serde_json::Value, String> {
    let answer = async { PrometheusClient::new(url, COMPONENT, Login::default(), TIMEOUT)?.query(query).await };
    answer.await.map_err(|problem| problem.to_string())
}

async fn check(part: &Part) -> PartState {
    let problem = match &part.check {
        Check::Task => None,
        Check::Listens(address) => match within_deadline(TIMEOUT, "connecting", TcpStream::connect(address)).await {
            Ok(Ok(_)) => None,
            Ok(Err(problem)) => Some(problem.to_string()),
            Err(_) => Some("no answer".to_owned()),
        },
        Check::Page { url, path } => {
            let answer = async { HttpClient::new(url, COMPONENT, None, TIMEOUT)?.get(path).await };
            answer.await.err().map(|_| "not ready".to_owned())
        }
    };
    PartState {
        name: part.name.clone(),
        ready: problem.is_none(),
        state: problem.unwrap_or_else(|| READY.to_owned()),
        place: part.place.clone(),
    }
}
