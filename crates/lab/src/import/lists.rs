//! Lists of a cluster's objects, page by page: what a page holds is reduced before the next one is asked for.

use kube::{Client, api::ListParams};
use kube_io::Class;
use serde_json::Value;

use super::objects::{Collector, Kind, Objects};
use crate::{Error, error::Context};

/// How many objects an answer holds at most.
const PAGE: u32 = 500;
const INSTANCES: &str = "/apis/kubevirt.io/v1/virtualmachineinstances";
const LAB_VMS: &str = "/apis/simulation.node-classifier.io/v1alpha1/virtualmachines";

/// Which objects count.
#[derive(Debug, Clone, Default)]
pub struct Selectors {
    pub nodes: Option<String>,
    /// Pods that stand for VMs.
    pub pods: Option<String>,
}

/// Lists nodes, VMs and pods of a cluster.
pub async fn list(client: &Client, selectors: &Selectors) -> Result<Objects, Error> {
    let kind = kind(client, selectors).await?;
    let mut collector = Collector::new(kind);
    let asked = selectors.nodes.is_some();
    pages(client, "/api/v1/nodes", selectors.nodes.as_deref(), |node| collector.node(node, asked)).await?;
    match kind {
        Kind::Instance => pages(client, INSTANCES, None, |object| collector.instance(object)).await?,
        Kind::Lab => pages(client, LAB_VMS, None, |object| collector.lab_vm(object)).await?,
        Kind::Pod => {
            pages(client, "/api/v1/pods", selectors.pods.as_deref(), |object| collector.pod(object, true)).await?
        }
    }
    // All other pods take room. Those that stand for VMs are known by now.
    pages(client, "/api/v1/pods", None, |object| collector.pod(object, false)).await?;
    let objects = collector.finish();
    if objects.nodes.is_empty() {
        return Err(Error::Asset("the cluster has no nodes that VMs could run on: name some with --nodes".into()));
    }
    Ok(objects)
}

/// VirtualMachineInstances if there are any, otherwise the lab's VirtualMachines, unless pods were asked for.
async fn kind(client: &Client, selectors: &Selectors) -> Result<Kind, Error> {
    if selectors.pods.is_some() {
        return Ok(Kind::Pod);
    }
    for (kind, path) in [(Kind::Instance, INSTANCES), (Kind::Lab, LAB_VMS)] {
        if let Some(page) = page(client, path, &ListParams::default().limit(1)).await?
            && !page.0.is_empty()
        {
            return Ok(kind);
        }
    }
    Err(Error::Asset(
        "the cluster has no VirtualMachineInstances: name the pods that stand for VMs, for example --pods app=guest"
            .into(),
    ))
}

async fn pages(client: &Client, path: &str, selector: Option<&str>, mut take: impl FnMut(&Value)) -> Result<(), Error> {
    let mut params = ListParams::default().limit(PAGE);
    params.label_selector = selector.map(str::to_owned);
    loop {
        let Some((items, next)) = page(client, path, &params).await? else { return Ok(()) };
        items.iter().for_each(&mut take);
        if next.is_none() {
            return Ok(());
        }
        params.continue_token = next;
    }
}

/// The objects of a page, and the token of the next one. None if the kind is not served.
async fn page(client: &Client, path: &str, params: &ListParams) -> Result<Option<(Vec<Value>, Option<String>)>, Error> {
    let request = kube::core::Request::new(path).list(params);
    let request = request.map_err(|problem| Error::Asset(format!("listing {path}: {problem}")))?;
    match client.request::<Value>(request).await {
        Err(error) if Class::of(&error).is_absent() => Ok(None),
        answer => {
            let mut answer = answer.context(|| format!("listing {path}"))?;
            let next = answer["metadata"]["continue"].as_str().filter(|token| !token.is_empty()).map(str::to_owned);
            let items = match answer["items"].take() {
                Value::Array(items) => items,
                _ => Vec::new(),
            };
            Ok(Some((items, next)))
        }
    }
}

/// What identifies a cluster: the UID of the namespace that every cluster has. None if it may not be read.
pub async fn identity(client: &Client) -> Option<String> {
    let request = http::Request::get("/api/v1/namespaces/kube-system").body(Vec::new()).ok()?;
    let namespace = client.request::<Value>(request).await.ok()?;
    namespace["metadata"]["uid"].as_str().map(str::to_owned)
}
