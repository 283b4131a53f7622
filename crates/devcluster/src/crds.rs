//! Installing CustomResourceDefinitions and waiting until their kinds are served.

use std::time::{Duration, Instant};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, ListParams, Patch, PatchParams},
    discovery::{ApiResource, Scope},
};

use crate::{
    Access,
    error::{Context, Error, Result},
    poll::poll,
};

const LIMIT: Duration = Duration::from_secs(120);
const REPUBLISH_LIMIT: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(20);
/// A changed schema is always published; a busy API server takes its time.
const SCHEMA_LIMIT: Duration = Duration::from_secs(30);
/// A list that reaches a kind whose storage is just being replaced may hang until the API server ends it, after a minute.
const LIST_LIMIT: Duration = Duration::from_secs(5);

impl Access {
    /// Applies `crds` and returns when every served version of each can be listed.
    pub async fn install_crds(&self, crds: &[CustomResourceDefinition]) -> Result<()> {
        let client = self.client().await?;
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        let params = PatchParams::apply("devcluster").force();
        let mut changed = Vec::new();
        for crd in crds {
            let name = crd.name_any();
            let doing = || format!("installing CustomResourceDefinition {name}");
            let schemas = published(&client, crd).await?;
            let before = api.get_opt(&name).await.context(doing)?;
            let after = api.patch(&name, &params, &Patch::Apply(crd)).await.context(doing)?;
            if let Some(before) = before.filter(|before| before.metadata.generation != after.metadata.generation) {
                let limit = if has_other_schemas(&before, &after) { SCHEMA_LIMIT } else { REPUBLISH_LIMIT };
                changed.push((crd, schemas, limit));
            }
        }
        for crd in crds {
            wait_established(&api, &crd.name_any()).await?;
            wait_served(&client, crd).await?;
        }
        for (crd, before, limit) in changed {
            wait_republished(&client, crd, &before, limit).await?;
        }
        Ok(())
    }
}

/// The hashes of the schemas that the API server publishes for a group.
async fn published(client: &Client, crd: &CustomResourceDefinition) -> Result<Vec<String>> {
    let doing = || "reading the published schemas".to_owned();
    let request = http::Request::get("/openapi/v3").body(Vec::new()).map_err(kube::Error::HttpError).context(doing)?;
    let index: serde_json::Value = client.request(request).await.context(doing)?;
    let prefix = format!("apis/{}/", crd.spec.group);
    let paths = index["paths"].as_object().into_iter().flatten();
    Ok(paths.filter(|(path, _)| path.starts_with(&prefix)).map(|(_, link)| link.to_string()).collect())
}

fn has_other_schemas(before: &CustomResourceDefinition, after: &CustomResourceDefinition) -> bool {
    let schemas = |crd: &CustomResourceDefinition| -> Vec<_> {
        let served = crd.spec.versions.iter().filter(|version| version.served);
        served.map(|version| (version.name.clone(), version.schema.clone())).collect()
    };
    schemas(before) != schemas(after)
}

/// A changed schema is in effect a moment after it was accepted, and published a moment after that. Changes that the schema
/// does not show, such as printer columns, are not waited for long.
async fn wait_republished(
    client: &Client,
    crd: &CustomResourceDefinition,
    before: &[String],
    limit: Duration,
) -> Result<()> {
    let start = Instant::now();
    while published(client, crd).await? == before && start.elapsed() < limit {
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

async fn wait_established(api: &Api<CustomResourceDefinition>, name: &str) -> Result<()> {
    poll(POLL, LIMIT, async || {
        let read = tokio::time::timeout(LIST_LIMIT, api.get(name)).await;
        let status = read.ok().and_then(Result::ok).and_then(|crd| crd.status);
        let conditions = status.and_then(|status| status.conditions).unwrap_or_default();
        let is = |kind: &str| conditions.iter().any(|condition| condition.type_ == kind && condition.status == "True");
        let is_established = is("Established") && is("NamesAccepted");
        is_established.then_some(()).ok_or_else(|| Error::NotEstablished { name: name.to_owned(), waited: LIMIT })
    })
    .await
}

/// Waits until a kind can be listed. An established kind answers 404 for another moment.
async fn wait_served(client: &Client, crd: &CustomResourceDefinition) -> Result<()> {
    let names = &crd.spec.names;
    for version in crd.spec.versions.iter().filter(|version| version.served) {
        let resource = ApiResource {
            group: crd.spec.group.clone(),
            version: version.name.clone(),
            api_version: format!("{}/{}", crd.spec.group, version.name),
            kind: names.kind.clone(),
            plural: names.plural.clone(),
        };
        let api: Api<DynamicObject> = Api::dynamic(client.clone(), &resource, &Scope::Cluster);
        let params = ListParams::default().limit(1);
        poll(POLL, LIMIT, async || {
            let last = match tokio::time::timeout(LIST_LIMIT, api.list_metadata(&params)).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => format!("{:?}", Some(error)),
                Err(slow) => slow.to_string(),
            };
            Err(Error::NotServed { name: names.plural.clone(), waited: LIMIT, last })
        })
        .await?;
    }
    Ok(())
}
