//! Arguments and start-up that the parts of the lab share when each is a process of its own.

use std::{future::Future, io};

use advisor::kube_descheduler::Release;
use anyhow::Context;
use kube::Client;
use kube_io::connect;
use process::{Shutdown, cluster::Selection, logging};

#[derive(clap::Args)]
pub(crate) struct Common {
    /// The context of the kubeconfig to use [default: its current one, or the pod's own cluster]
    #[arg(long)]
    context: Option<String>,
    /// What to log: error, warn, info, debug or trace, or a filter such as `info,lab=debug`
    #[arg(long, value_name = "FILTER", env = "LOG_LEVEL", default_value = "info")]
    log_level: String,
}

impl Common {
    /// Runs a part until the process is asked to stop. `name` is for people, `component` is what its requests call it.
    pub(crate) fn run<F>(
        &self,
        name: &str,
        component: &str,
        part: impl FnOnce(Client, Shutdown) -> F,
    ) -> anyhow::Result<()>
    where
        F: Future<Output = io::Result<()>>,
    {
        logging::to_stderr(&self.log_level, logging::Format::Text)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting")?;
        runtime.block_on(async {
            let shutdown = Shutdown::new().context("listening for signals")?;
            let mut config = Selection { context: self.context.clone(), ..Selection::default() }.config().await?;
            // The parts retry by themselves.
            config.default_retry = false;
            let client = connect::client(config, component).context("making a client for the cluster")?;
            part(client, shutdown).await.with_context(|| format!("running the {name}"))
        })
    }
}

/// A factor by which time is shortened.
pub(crate) fn time_scale(text: &str) -> Result<f64, String> {
    let scale = text.parse::<f64>().ok().filter(|scale| (0.001..=1000.0).contains(scale));
    scale.ok_or_else(|| "expected a number from 0.001 to 1000, such as 20".to_owned())
}

/// A release of the descheduler's operator that the stand-in plays.
pub(crate) fn release(text: &str) -> Result<Release, String> {
    let found = Release::ALL.into_iter().find(|release| release.as_str() == text);
    found.ok_or_else(|| format!("the stand-in plays {}", Release::ALL.map(Release::as_str).join(", ")))
}

/// The arguments of a part, as people write them.
#[cfg(test)]
pub(crate) fn parse<A: clap::Args>(line: &str) -> Result<A, clap::Error> {
    #[derive(clap::Parser)]
    struct Line<A: clap::Args> {
        #[command(flatten)]
        args: A,
    }
    <Line<A> as clap::Parser>::try_parse_from(["part"].into_iter().chain(line.split_whitespace())).map(|line| line.args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_scale_is_a_sensible_number() {
        assert_eq!(time_scale("20"), Ok(20.0));
        assert_eq!(time_scale("0.5"), Ok(0.5));
        for text in ["0", "-1", "NaN", "inf", "", "20x", "1e9"] {
            assert!(time_scale(text).is_err(), "{text}");
        }
    }
}
