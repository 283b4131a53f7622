//! What a plan costs, as a ratio to the API calls that it cannot avoid, while the cluster around it grows.

use std::time::{Duration, Instant};

use advisor::profiles;
use anyhow::Context;
use devcluster::Identity;
use futures::{StreamExt, TryStreamExt, future::try_join_all, stream};
use http::Request;
use kube::Client;
use kube_io::{ApiServer, Class};
use operator::make_plan;
use serde_json::{Value, json};

use crate::bench_cluster;

const RUNS: usize = 30;
const PROFILE: &str = "load-aware-rebalancing";

/// How many other objects there are in each round.
const SIZES: [(usize, usize); 3] = [(1, 10), (100, 500), (1000, 5000)];

pub(crate) async fn run() -> anyhow::Result<()> {
    println!("Starting a control plane with the third parties' kinds");
    let cluster = bench_cluster::start().await?;
    let client = kube_io::connect::client(cluster.access().config(&Identity::Admin).await?, "xtask")?;
    let kubernetes = ApiServer::new(cluster.access().config(&Identity::Admin).await?, "xtask")?;
    let profile = profiles::find(PROFILE).context("the profile is registered")?;

    println!("\n{PROFILE}, median of {RUNS}, plan and bare calls taken in turn:\n");
    println!(
        "{:>14} {:>6} {:>9} {:>10} {:>11} {:>7}",
        "MachineConfigs", "nodes", "requests", "plan [ms]", "bare [ms]", "ratio"
    );
    let (mut configs, mut nodes) = (0, 0);
    for (want_configs, want_nodes) in SIZES {
        grow(
            &client,
            "/apis/machineconfiguration.openshift.io/v1/machineconfigs",
            configs..want_configs,
            machine_config,
        )
        .await?;
        grow(&client, "/api/v1/nodes", nodes..want_nodes, node).await?;
        (configs, nodes) = (want_configs, want_nodes);

        let before = cluster.audit().position(&client).await?;
        make_plan(&kubernetes, profile, None).await?;
        let seen = cluster.audit().since(before, &client).await?;
        let plan = make_plan(&kubernetes, profile, None).await?;
        let calls = Calls::of(&seen, &plan);

        let (mut planned, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let start = Instant::now();
            make_plan(&kubernetes, profile, None).await?;
            planned.push(start.elapsed());
            let start = Instant::now();
            calls.make(&client).await?;
            bare.push(start.elapsed());
        }
        let (planned, bare) = (median(planned), median(bare));
        let milliseconds = |duration: Duration| duration.as_secs_f64() * 1000.0;
        println!(
            "{configs:>14} {nodes:>6} {:>9} {:>10.1} {:>11.1} {:>7.2}",
            seen.len(),
            milliseconds(planned),
            milliseconds(bare),
            planned.as_secs_f64() / bare.as_secs_f64()
        );
    }
    Ok(())
}

/// The requests that a plan made, repeated without computing anything: reads, reads that follow from them, dry runs. The
/// requests of one round are made at once, as the plan makes them.
struct Calls {
    rounds: [Vec<(String, Option<Value>)>; 3],
}

impl Calls {
    fn of(seen: &[devcluster::AuditedRequest], plan: &advisor::Plan) -> Calls {
        let mut rounds: [Vec<_>; 3] = Default::default();
        for request in seen {
            let body =
                plan.items.iter().find(|planned| request.dry_run && request.name == planned.item.target_ref.name);
            let round = match body {
                Some(_) => 2,
                None if request.name.starts_with("rendered-") => 1,
                None => 0,
            };
            rounds[round].push((request.uri.clone(), body.map(|planned| json!(planned.item.desired_state))));
        }
        Calls { rounds }
    }

    async fn make(&self, client: &Client) -> anyhow::Result<()> {
        for round in &self.rounds {
            let calls = round.iter().map(|(uri, body)| async move {
                let request = match body {
                    None => Request::get(uri).body(Vec::new())?,
                    Some(body) => Request::patch(uri)
                        .header("content-type", "application/apply-patch+yaml")
                        .body(body.to_string().into_bytes())?,
                };
                match client.request_text(request).await {
                    Err(error) if Class::of(&error).is_absent() => Ok(()),
                    Err(error) => Err(anyhow::Error::from(error)),
                    Ok(_) => Ok(()),
                }
            });
            try_join_all(calls).await?;
        }
        Ok(())
    }
}

/// Creates the objects with these numbers.
pub(crate) async fn grow(
    client: &Client,
    path: &str,
    numbers: std::ops::Range<usize>,
    object: fn(usize) -> Value,
) -> anyhow::Result<()> {
    let create = |number| async move {
        let request = Request::post(path)
            .header("content-type", "application/json")
            .body(object(number).to_string().into_bytes())?;
        client.request_text(request).await?;
        anyhow::Ok(())
    };
    stream::iter(numbers).map(create).buffer_unordered(16).try_for_each(|()| async { Ok(()) }).await
}

fn machine_config(number: usize) -> Value {
    let source = format!("data:,{}", "x".repeat(24 * 1024));
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": format!("50-other-{number}"), "labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": [{"path": "/etc/other", "contents": {"source": source}}]}}},
    })
}

fn node(number: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("node-{number}")}})
}

fn median(mut durations: Vec<Duration>) -> Duration {
    durations.sort();
    durations[durations.len() / 2]
}
