//! Completion. For `kubectl virt-advisor` kubectl asks `kubectl_complete-virt_advisor`: the words are its arguments, the last one perhaps
//! empty, and it answers with lines `value<TAB>description` and a last line with a number for the shell. It must be silent and must not
//! fail. For the program itself shells get a script.

use std::{ffi::OsString, time::Duration};

use clap::{Arg, Command, FromArgMatches, ValueHint};
use clap_complete::Shell;

use crate::{configs, connection::Connection};

/// How long the cluster may take to answer: somebody waits at a prompt.
const LIMIT: Duration = Duration::from_secs(2);

/// What the shell shall do beside the candidates, as cobra numbers it.
const FILES: &str = ":0\n";
const NO_FILES: &str = ":4\n";

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  virt-advisor completion bash > ~/.local/share/bash-completion/completions/virt-advisor
  virt-advisor completion zsh > ~/.zfunc/_virt-advisor

For kubectl virt-advisor, link this program into a folder of your PATH as kubectl_complete-virt_advisor: kubectl asks it for the \
                          completions, and it also knows the profiles of the cluster.")]
pub(crate) struct Args {
    /// The shell that the script is for
    shell: Shell,
}

pub(crate) fn script(args: &Args, mut command: Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "virt-advisor", &mut script);
    terminal::print(&String::from_utf8_lossy(&script))
}

/// The answer to kubectl.
pub(crate) async fn answer(command: Command, words: &[OsString]) -> String {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    match candidates(&command, &words) {
        Candidates::Fixed(lines) => lines.concat() + NO_FILES,
        Candidates::Files => FILES.to_owned(),
        Candidates::Profiles(begin) => {
            let found = tokio::time::timeout(LIMIT, profiles(command, &words)).await;
            let names = found.unwrap_or_default().into_iter().filter(|(name, _)| name.starts_with(&begin));
            names.map(|(name, phase)| format!("{name}\t{phase}\n")).collect::<String>() + NO_FILES
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Candidates {
    /// Lines of the answer.
    Fixed(Vec<String>),
    Files,
    /// The profiles of the cluster that begin so.
    Profiles(String),
}

fn candidates(command: &Command, words: &[String]) -> Candidates {
    let (last, before) = words.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let mut command = command.clone();
    command.build();
    let mut current = &command;
    let (mut position, mut awaited) = (0, None);
    for word in before {
        match (awaited.take(), word.strip_prefix('-')) {
            (Some(_), _) => {}
            (None, Some(_)) => awaited = option(current, word),
            (None, None) => match current.find_subcommand(word) {
                Some(below) => (current, position) = (below, 0),
                None => position += 1,
            },
        }
    }
    if let Some(awaited) = awaited {
        return values(awaited, last);
    }
    if last.starts_with('-') {
        let options = current.get_arguments().filter(|arg| !arg.is_positional() && !arg.is_hide_set());
        let long = options.filter_map(|arg| Some((format!("--{}", arg.get_long()?), about(arg.get_help()))));
        return Candidates::Fixed(lines(long, last));
    }
    if current.has_subcommands() {
        let below = current.get_subcommands().filter(|below| !below.is_hide_set());
        let named = below.map(|below| (below.get_name().to_owned(), about(below.get_about())));
        return Candidates::Fixed(lines(named, last));
    }
    match current.get_positionals().nth(position) {
        Some(arg) => values(arg, last),
        None => Candidates::Fixed(Vec::new()),
    }
}

/// The option of a word, if its value is the next word.
fn option<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let is_meant = |arg: &&Arg| match word.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => word.len() == 2 && arg.get_short() == word.chars().nth(1),
    };
    command.get_arguments().find(is_meant).filter(|arg| arg.get_action().takes_values())
}

fn values(arg: &Arg, begin: &str) -> Candidates {
    let possible = arg.get_possible_values();
    let words = possible.iter().map(|value| (value.get_name().to_owned(), about(value.get_help())));
    match (arg.get_id().as_str(), arg.get_value_hint()) {
        _ if !possible.is_empty() => Candidates::Fixed(lines(words, begin)),
        ("profile", _) => Candidates::Profiles(begin.to_owned()),
        (_, ValueHint::FilePath | ValueHint::DirPath | ValueHint::AnyPath) => Candidates::Files,
        _ => Candidates::Fixed(Vec::new()),
    }
}

fn about(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

fn lines(candidates: impl Iterator<Item = (String, String)>, begin: &str) -> Vec<String> {
    candidates
        .filter(|(value, _)| value.starts_with(begin))
        .map(|(value, about)| format!("{value}\t{about}\n"))
        .collect()
}

/// The profiles of the cluster that the words name, with their phases. Nothing if it cannot be asked.
async fn profiles(command: Command, words: &[String]) -> Vec<(String, String)> {
    let given = ["virt-advisor".to_owned()].into_iter().chain(words.iter().cloned());
    let matches = command.ignore_errors(true).try_get_matches_from(given).ok();
    let connection = matches.and_then(|matches| Connection::from_arg_matches(&matches).ok()).unwrap_or_default();
    let Ok(reader) = connection.reader("completion").await else { return Vec::new() };
    let configs = configs::list(&reader).await.unwrap_or_default().configs;
    let phase = |config: &api::VirtPlatformConfig| config.status.as_ref().and_then(|status| status.phase);
    configs
        .iter()
        .map(|config| {
            (config.spec.profile.to_string(), phase(config).map_or_else(String::new, |phase| phase.to_string()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(words: &[&str]) -> Candidates {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        candidates(&crate::command(), &words)
    }

    fn fixed(words: &[&str]) -> Vec<String> {
        match told(words) {
            Candidates::Fixed(lines) => {
                lines.iter().filter_map(|line| Some(line.split_once('\t')?.0.to_owned())).collect()
            }
            other => panic!("{words:?}: {other:?}"),
        }
    }

    #[test]
    fn commands_options_and_values_are_offered_where_they_may_stand() {
        assert_eq!(fixed(&["hist"]), ["history"]);
        assert!(fixed(&[""]).contains(&"plan".to_owned()), "{:?}", fixed(&[""]));
        assert_eq!(fixed(&["--context", "lab", "dri"]), ["drift"]);
        assert_eq!(fixed(&["plan", "--dra"]), ["--draft"]);
        assert_eq!(fixed(&["plan", "-o", ""]), ["text", "json", "yaml"]);
        assert_eq!(fixed(&["list", "--color", "al"]), ["always"]);
        assert_eq!(fixed(&["history", "x", ""]), [""; 0]);
        assert_eq!(fixed(&["completion", "z"]), ["zsh"]);
    }

    #[test]
    fn profiles_come_from_the_cluster_and_files_from_the_shell() {
        assert_eq!(told(&["plan", ""]), Candidates::Profiles(String::new()));
        assert_eq!(told(&["--context", "lab", "drift", "--exit-code", "load"]), Candidates::Profiles("load".into()));
        assert_eq!(told(&["plan", "--options", ""]), Candidates::Files);
        assert_eq!(told(&["--kubeconfig", ""]), Candidates::Files);
        assert_eq!(told(&["list", "--context", ""]), Candidates::Fixed(Vec::new()));
    }
}
