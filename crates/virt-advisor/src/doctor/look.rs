//! Asks the API server what the checks need to know, and hands it to them.

use advisor::{
    InvalidOptions, Planner, Profile, access,
    profile::{self, Missing},
    profiles, restore,
};
use api::{VirtPlatformConfigSpec, names::ADVISOR_GROUP, virt_platform_config::Item};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use kube_io::{Class, RequestError};
use operator::{fetch_facts, object_path};
use serde_json::Value;

use super::{
    configurations, definitions, finding::Finding, managers, prerequisites, rights as rights_check, running, server,
    webhooks,
};
use crate::{
    gather::{collect::CONFIG, running::LABELS, scope},
    reader::Reader,
    rights,
};

/// The findings, from the API server to the configurations. Without an API server there is just the first.
pub(super) async fn look(reader: &Reader, namespace: &str) -> Vec<Finding> {
    let version = reader.get("/version").await;
    let mut findings = vec![server::api_server(&reader.url, &version)];
    if version.is_err_and(|error| error.class != Class::Forbidden) {
        return findings;
    }
    let offset = reader.clock_offset().await;
    let now = Timestamp::now() + offset.map_or(SignedDuration::ZERO, |(offset, _)| offset);
    let configs = reader.list(&format!("/apis/{ADVISOR_GROUP}/{}/{}", CONFIG.versions[0], CONFIG.plural)).await;
    let operators = operators(configs.as_deref().unwrap_or_default());

    findings.push(definitions::definitions(&definitions(reader).await, &operators));
    findings.push(running::version(&operators));
    findings.extend(operator(reader, namespace, now).await);
    findings.extend(rights(reader, namespace).await);
    findings.push(server::clock(offset));
    findings.push(webhooks::webhooks(&webhooks(reader).await));
    findings.extend(prerequisites::prerequisites(&prerequisites(reader, configs.as_deref().unwrap_or_default()).await));
    findings.extend(managers::managers(&targets(reader, configs.as_deref().unwrap_or_default()).await));
    findings.extend(configurations::configurations(&configs));
    findings
}

/// The versions of operators that made the plans.
fn operators(configs: &[Value]) -> Vec<String> {
    let named = configs.iter().filter_map(|config| config["status"]["operatorVersion"].as_str());
    let mut named: Vec<String> = named.map(str::to_owned).collect();
    named.sort();
    named.dedup();
    named
}

async fn definitions(reader: &Reader) -> Vec<definitions::Seen> {
    let discovery = reader.get(&format!("/apis/{ADVISOR_GROUP}/{}", CONFIG.versions[0])).await;
    let served = |plural: &str| match &discovery {
        Ok(list) => Some(list["resources"].as_array().into_iter().flatten().any(|known| known["name"] == plural)),
        Err(error) if error.class.is_absent() => Some(false),
        Err(_) => None,
    };
    let ours = [api::crd::virt_platform_config(), api::crd::virt_platform_plan_record()];
    join_all(ours.into_iter().map(|expected| {
        let served = served(&expected.spec.names.plural);
        async move {
            let name = expected.metadata.name.clone().unwrap_or_default();
            let live = reader.get(&format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")).await;
            definitions::Seen { expected, live, served }
        }
    }))
    .await
}

async fn operator(reader: &Reader, namespace: &str, now: Timestamp) -> [Finding; 2] {
    let listed =
        |root: &str, resource: &str| format!("{root}/namespaces/{namespace}/{resource}?labelSelector={LABELS}");
    let deployments = reader.list(&listed("/apis/apps/v1", "deployments")).await;
    let pods = reader.list(&listed("/api/v1", "pods")).await;
    let lease =
        reader.get(&format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{}", access::LEASE)).await;
    let leader = lease.as_ref().ok().map(|lease| running::leader(lease, now));
    [
        running::operator(namespace, &deployments, &pods, leader.as_ref()),
        running::leading(namespace, &lease, leader.as_ref()),
    ]
}

async fn rights(reader: &Reader, namespace: &str) -> [Finding; 3] {
    let asked = rights_check::about_caller(namespace);
    let answers = rights::of_caller(reader, &asked).await;
    let caller = rights_check::caller(namespace, &(asked, answers));
    let asked = rights_check::about_operator(namespace);
    let answers = rights::of_operator(reader, namespace, &asked).await;
    let of_operator = (asked, answers);
    [caller, rights_check::operator(&of_operator), rights_check::watches(&of_operator)]
}

async fn webhooks(reader: &Reader) -> Result<Vec<Value>, RequestError> {
    let path = |kind: &str| format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
    let mut all = reader.list(&path("validating")).await?;
    all.extend(reader.list(&path("mutating")).await?);
    Ok(all)
}

/// The planner of a configuration: of its profile with its options or, while it restores, of the way back. Without a configuration, or if
/// its spec cannot be read, that of the profile with the defaults.
fn planner(known: &'static dyn Profile, config: Option<&Value>) -> Result<Box<dyn Planner>, InvalidOptions> {
    let spec = config.and_then(|config| serde_json::from_value::<VirtPlatformConfigSpec>(config["spec"].clone()).ok());
    match spec {
        Some(spec) => restore::planner(known, &spec),
        None => known.resolve(None),
    }
}

/// What each profile, or the restore of what it has changed, lacks.
async fn prerequisites(reader: &Reader, configs: &[Value]) -> Vec<prerequisites::Seen> {
    // The example has nothing to do with a platform; it is looked at only if somebody uses it.
    let shown = profiles::PROFILES.iter().map(|known| {
        let config = configs.iter().find(|config| config["metadata"]["name"] == known.about().name);
        (*known, config)
    });
    let shown = shown.filter(|(known, config)| known.about().advertised || config.is_some());
    join_all(shown.map(|(known, config)| async move {
        let action = config.and_then(|config| config["spec"]["action"].as_str());
        let missing = match planner(known, config) {
            Ok(planner) => fetch_facts(reader.api_server(), planner.as_ref())
                .await
                .map(|facts| profile::all_missing(&planner.requirements(&facts), &facts)),
            Err(error) => Ok(vec![Missing { what: error.to_string(), hint: None }]),
        };
        let in_use = action.is_some_and(|action| action != "Ignore");
        prerequisites::Seen { profile: known.about().name, in_use, missing }
    }))
    .await
}

/// The targets of applied items, as they are. A restore manages nothing.
async fn targets(reader: &Reader, configs: &[Value]) -> Vec<managers::Seen> {
    let managing = configs.iter().filter(|config| config["status"]["restore"].is_null());
    let items = managing.flat_map(|config| config["status"]["items"].as_array().into_iter().flatten());
    let items = items.filter_map(|item| serde_json::from_value::<Item>(item.clone()).ok()).filter(managers::is_applied);
    let located = items.filter_map(|item| {
        let target = &item.target_ref;
        let version = target.api_version.rsplit('/').next()?;
        let path = object_path(scope::kind_of(target)?, target.namespace.as_deref(), &target.name, version);
        Some((item, path))
    });
    join_all(located.map(|(item, path)| async move { managers::Seen { item, live: reader.get(&path).await } })).await
}

#[cfg(test)]
mod tests {
    use advisor::{Facts, Query, kind};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_configuration_that_restores_is_asked_for_its_records_and_not_for_what_the_profile_needs() {
        let profile = profiles::find("load-aware-rebalancing").unwrap();
        let wanted = |spec: Value| {
            let config = json!({"spec": spec});
            let planner = planner(profile, Some(&config)).unwrap();
            planner.wants(&Facts::default()).contains(&Query::List(&kind::PLAN_RECORD))
        };
        let spec =
            |restore: Value| json!({"profile": "load-aware-rebalancing", "action": "DryRun", "restore": restore});
        assert!(wanted(spec(json!({"record": "original"}))));
        assert!(!wanted(spec(Value::Null)));
        assert!(!wanted(json!({"profile": 7})), "it cannot be read");
        assert!(planner(profile, None).is_ok());
    }
}
