//! Which cluster a command talks to, and as whom: the options that kubectl has, before or after the command.

use std::{path::PathBuf, sync::Arc, time::Duration};

use advisor::access::NAMESPACE;
use clap::{ValueEnum, ValueHint};
use kube_io::{ApiServer, Observer};
use process::cluster::Selection;

use crate::reader::Reader;

/// Longer than anybody waits for an answer.
const NO_LIMIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Connection {
    /// The kubeconfig file to use [default: KUBECONFIG, else ~/.kube/config]
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use
    #[arg(long, global = true, value_name = "NAME")]
    context: Option<String>,
    /// The user to act as; needs the right to impersonate
    #[arg(long = "as", global = true, value_name = "USER")]
    user: Option<String>,
    /// A group of the user to act as; can be repeated
    // Global options cannot require each other, so `check` does.
    #[arg(long = "as-group", global = true, value_name = "GROUP")]
    groups: Vec<String>,
    /// The namespace of the operator [default: openshift-cnv]; of `impact`, that of the virtual machines [default: all]
    #[arg(short, long, global = true, value_name = "NAMESPACE", value_parser = namespace)]
    pub(crate) namespace: Option<String>,
    /// How long a request may take, for example 30s; 0 is no limit [default: 10s, and 30s for changes and dry runs]
    #[arg(long, global = true, value_name = "DURATION", value_parser = timeout)]
    request_timeout: Option<Duration>,
    /// When to use colors; NO_COLOR is honored
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    color: Color,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

impl Connection {
    /// Tells anstream about colors, and refuses what cannot be done.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        match self.color {
            Color::Auto => {}
            Color::Always => anstream::ColorChoice::Always.write_global(),
            Color::Never => anstream::ColorChoice::Never.write_global(),
        }
        anyhow::ensure!(self.user.is_some() || self.groups.is_empty(), "--as-group needs --as");
        Ok(())
    }

    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(NAMESPACE)
    }

    pub(crate) fn selection(&self) -> Selection {
        let Connection { kubeconfig, context, user, groups, .. } = self;
        Selection {
            kubeconfig: kubeconfig.clone(),
            context: context.clone(),
            user: user.clone(),
            groups: groups.clone(),
        }
    }

    /// A client for reading. `component` is the name of the sender in the API server's audit log.
    pub(crate) async fn reader(&self, component: &str) -> anyhow::Result<Reader> {
        self.observed_reader(component, Arc::new(())).await
    }

    /// The same, with an observer of all requests.
    pub(crate) async fn observed_reader(&self, component: &str, observer: Arc<dyn Observer>) -> anyhow::Result<Reader> {
        Reader::connect(self.selection().config().await?, component, self.request_timeout, observer)
    }

    /// A client for making plans.
    pub(crate) async fn api_server(&self, component: &str) -> anyhow::Result<ApiServer> {
        let api_server = ApiServer::new(self.selection().config().await?, component)?;
        Ok(match self.request_timeout {
            Some(deadline) => api_server.with_deadline(deadline),
            None => api_server,
        })
    }
}

/// The name of a namespace. Whatever else was typed would change the path of a request, and what is not found there looks as if there
/// were nothing.
fn namespace(text: &str) -> Result<String, String> {
    let is_inside = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    let is_name = (1..=63).contains(&text.len()) && text.bytes().all(is_inside);
    match is_name && !text.starts_with('-') && !text.ends_with('-') {
        true => Ok(text.to_owned()),
        false => Err("no namespace can have this name".to_owned()),
    }
}

/// A duration, or a number of seconds, as kubectl takes them: 0 is no limit.
fn timeout(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(0) => Ok(NO_LIMIT),
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) if text == "0s" => Ok(NO_LIMIT),
        Err(_) => crate::operator::duration(text),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn options_of_every_command_stand_before_or_after_it() {
        let options = ["--kubeconfig", "f", "--context", "c", "--as", "u", "--as-group", "g", "-n", "ns"];
        for words in [[&options[..], &["list"]].concat(), [&["list"], &options[..]].concat()] {
            let cli = crate::Cli::try_parse_from([&["virt-advisor"], &words[..]].concat()).unwrap();
            let Selection { kubeconfig, context, user, groups } = cli.connection.selection();
            assert_eq!((kubeconfig, context), (Some("f".into()), Some("c".into())), "{words:?}");
            assert_eq!((user, groups), (Some("u".into()), vec!["g".into()]), "{words:?}");
            assert_eq!(cli.connection.namespace(), "ns");
        }
    }

    #[test]
    fn a_timeout_is_a_number_of_seconds_or_a_duration() {
        assert_eq!(timeout("7"), Ok(Duration::from_secs(7)));
        assert_eq!(timeout("1m30s"), Ok(Duration::from_secs(90)));
        assert!(timeout("soon").is_err());
        assert_eq!([timeout("0"), timeout("0s")], [Ok(NO_LIMIT), Ok(NO_LIMIT)], "as kubectl has it");
    }

    #[test]
    fn what_cannot_be_a_namespace_is_a_wrong_command_line() {
        let parsed = |name: &str| crate::Cli::try_parse_from(["virt-advisor", "impact", "-n", name]);
        for name in ["shop", "a", "team-3", &"a".repeat(63)] {
            assert_eq!(parsed(name).map(|cli| cli.connection.namespace).unwrap().as_deref(), Some(name));
        }
        for other in ["", "shop/pods", "a?b", "..", "Shop", "-a", "a-", "größe", &"a".repeat(64)] {
            let error = parsed(other).map(|_| ()).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{other}: {error}");
        }
    }
}
