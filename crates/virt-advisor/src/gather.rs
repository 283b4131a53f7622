//! `virt-advisor gather`: everything about our configurations that support asks for, and nothing else of the cluster.

mod archive;
pub(crate) mod collect;
mod index;
mod layout;
mod mask;
pub(crate) mod plan_text;
mod pod_metrics;
pub(crate) mod running;
pub(crate) mod scope;

use std::{collections::BTreeSet, path::PathBuf};

use anyhow::Context;
use jiff::Timestamp;
use serde_json::Value;

use crate::{connection::Connection, prose::outdented};
use archive::Output;
use collect::Collector;
use index::{Entry, Index, State};
use pod_metrics::{PodMetrics, PodMetricsArgs};

/// Where `oc adm must-gather` expects files, unless this variable names another folder.
const MUST_GATHER: &str = "/must-gather";
const MUST_GATHER_VARIABLE: &str = "BASE_COLLECTION_PATH";

#[derive(clap::Args)]
#[command(after_help = "Examples:
  virt-advisor gather
  virt-advisor gather -o case-4711.tar.gz")]
pub(crate) struct Args {
    /// Where to write: a new folder, or a file that ends with .tar or .tar.gz [default: virt-advisor-gather-<time>.tar.gz]
    #[arg(short, long, value_name = "DIR|FILE")]
    output: Option<PathBuf>,
    /// How far back logs go, for example 2h [default: as far as there are any]
    #[arg(long, value_name = "DURATION", env = "MUST_GATHER_SINCE", hide_env = true, value_parser = crate::operator::duration)]
    since: Option<std::time::Duration>,
    /// From when on logs are read, for example 2026-01-12T09:30:00Z
    #[arg(long, value_name = "TIME", env = "MUST_GATHER_SINCE_TIME", hide_env = true, conflicts_with = "since")]
    since_time: Option<Timestamp>,
    #[command(flatten)]
    metrics: PodMetricsArgs,
    /// The program was started as /usr/bin/gather: it writes into /must-gather, whatever is there already
    #[arg(long, hide = true)]
    must_gather: bool,
}

pub(crate) async fn run(args: &Args, connection: &Connection) -> anyhow::Result<()> {
    let now = Timestamp::now();
    let output = output(args, now);
    if !args.must_gather {
        output.check()?;
    }
    let reader = connection.reader("gather").await?;
    let config = connection.selection().config().await?;
    let pod_metrics = PodMetrics::new(&config, &args.metrics, connection.namespace())?;
    let unreachable = || format!("the API server at {} does not answer: check KUBECONFIG and --context", reader.url);
    let version = match reader.get("/version").await {
        Err(error) if error.class == kube_io::Class::Unknown => return Err(error).with_context(unreachable),
        version => version,
    };
    let mut collector = Collector::new(&reader, connection.namespace(), since(args), pod_metrics);
    match &version {
        Ok(version) => collector.add_object(
            "version of the API server".into(),
            "virt-advisor/server-version.yaml".into(),
            version.clone(),
        ),
        Err(error) => collector.failed("version of the API server".into(), error),
    }
    let configs = collector.collect().await;
    let (mut files, mut entries) = (collector.files, collector.entries);
    entries.sort_by(|a, b| (a.path.as_deref(), a.what.as_str()).cmp(&(b.path.as_deref(), b.what.as_str())));
    let index = index(connection.namespace(), now, version.ok().as_ref(), &configs, entries);
    // The first line is the name of what collects, the second one its version: as in every must-gather.
    files.insert("version".into(), format!("virt-advisor\n{}\n", index.client).into_bytes());
    files.insert("index.json".into(), index.json()?.into_bytes());
    files.insert("summary.txt".into(), index.summary(&configs).into_bytes());
    output.write(&files, now)?;
    report(&index, &output);
    Ok(())
}

fn report(index: &Index, output: &Output) {
    anstream::eprint!("{}", missing(index, terminal::width()));
    anstream::println!("{}", output.path().display());
}

/// What could not be read.
fn missing(index: &Index, width: usize) -> String {
    let unread = index.entries.iter().filter(|entry| entry.state == State::Unreadable);
    let line = |entry: &Entry| {
        outdented(&format!("could not read {}: {}", entry.what, entry.reason.unwrap_or("left out")), width)
    };
    let lines: String = unread.map(line).collect();
    let hint = "summary.txt says why; somebody with more rights can collect the rest";
    if lines.is_empty() { lines } else { lines + &outdented(hint, width) }
}

fn output(args: &Args, now: Timestamp) -> Output {
    match (&args.output, args.must_gather) {
        (Some(path), _) => Output::of(path.clone()),
        (None, true) => {
            let named = std::env::var_os(MUST_GATHER_VARIABLE).filter(|named| !named.is_empty());
            Output::Folder(named.map_or_else(|| PathBuf::from(MUST_GATHER), PathBuf::from))
        }
        (None, false) => Output::of(format!("virt-advisor-gather-{}.tar.gz", now.strftime("%Y%m%dT%H%M%SZ")).into()),
    }
}

/// The parameters of a log that say how far back it goes.
fn since(args: &Args) -> String {
    match (args.since, args.since_time) {
        (Some(since), _) => format!("&sinceSeconds={}", since.as_secs().max(1)),
        (None, Some(time)) => format!("&sinceTime={time:.0}"),
        (None, None) => String::new(),
    }
}

fn index(namespace: &str, now: Timestamp, server: Option<&Value>, configs: &[Value], entries: Vec<Entry>) -> Index {
    let operators: BTreeSet<&str> =
        configs.iter().filter_map(|config| config["status"]["operatorVersion"].as_str()).collect();
    Index {
        api_version: "gather.advisor.kubevirt.io/v1alpha1",
        kind: "GatherIndex",
        collected_at: format!("{now:.0}"),
        client: crate::VERSION,
        server: server.and_then(|server| server["gitVersion"].as_str()).map(str::to_owned),
        operators: operators.into_iter().map(str::to_owned).collect(),
        namespace: namespace.to_owned(),
        entries,
    }
}

#[cfg(test)]
mod tests {
    use crate::golden;

    #[test]
    fn what_could_not_be_read_is_told_before_the_place_of_the_rest() {
        let (index, _) = super::index::collected();
        golden::assert("gather", |width| super::missing(&index, width));
    }
}
