//! A command line as Markdown.

use clap::{Arg, Command, builder::StyledStr};

const MARK: &str = "<!-- Made from the command line by a test. Do not edit: `UPDATE_DOCS=1 cargo test -p virt-advisor` writes it. -->\n";

/// The page of one command, which is built.
pub(super) fn page(command: &Command) -> String {
    let mut text = format!("{MARK}\n# {}\n\n", command.get_bin_name().unwrap_or_default());
    text += &format!("{}.\n\n", plain(command.get_about()));
    text += &format!("```\n{}\n```\n", usage(command));
    let own: Vec<&Arg> = command.get_arguments().filter(|arg| is_own(arg)).collect();
    text += &table("argument or option", &own);
    text += "\nAlso the [options of every command](README.md#options-of-every-command).\n";
    let help = plain(command.get_after_help());
    match help.strip_prefix("Examples:\n") {
        Some(examples) => {
            let (commands, words) = examples.split_once("\n\n").unwrap_or((examples, ""));
            let commands: String = commands.lines().map(|line| format!("{}\n", line.trim_start())).collect();
            text += &format!("\n## Examples\n\n```sh\n{commands}```\n");
            if !words.is_empty() {
                text += &format!("\n{words}\n");
            }
        }
        None if !help.is_empty() => text += &format!("\n{help}\n"),
        None => {}
    }
    text
}

/// The index of all pages.
pub(super) fn index<'a>(root: &Command, commands: impl Iterator<Item = &'a Command>, codes: &[(u8, &str)]) -> String {
    let mut text = format!(
        "{MARK}\n# The commands\n\n\
         `virt-advisor` is one program. On the path as `kubectl-virt_advisor` it is the plugin `kubectl virt-advisor`, also for `oc`. \
         Options come after the name of the plugin: kubectl does not hand over its own.\n\n\
         | command | what it does |\n|---|---|\n"
    );
    for command in commands {
        let name = command.get_name();
        text += &format!("| [{name}]({name}.md) | {} |\n", plain(command.get_about()));
    }
    let global: Vec<&Arg> = root.get_arguments().filter(|arg| arg.is_global_set()).collect();
    text += "\n## Options of every command\n";
    text += &table("option", &global);
    text += "\n## Exit codes\n\n| code | meaning |\n|---|---|\n";
    for (code, meaning) in codes {
        text += &format!("| {code} | {meaning} |\n");
    }
    text + "\n## Outputs for programs\n\n\
            `-o json` and `-o yaml` print a document with `apiVersion` (`cli.advisor.kubevirt.io/v1alpha1`), `kind` and `client`, the version \
            of the program. Fields are added, and none changes its meaning. [schema.json](schema.json) is the JSON schema of the \
            documents, one for each `kind`.\n\n\
            ## Completion and manual pages\n\n\
            `virt-advisor completion bash|zsh|fish|powershell` prints a script for the shell. For `kubectl virt-advisor`, link the program \
            into a folder of your path as `kubectl_complete-virt_advisor`: kubectl then asks it for completions, also of the profiles of \
            the cluster. `virt-advisor man FOLDER` writes manual pages.\n"
}

fn is_own(arg: &Arg) -> bool {
    !arg.is_global_set() && !["help", "version"].contains(&arg.get_id().as_str()) && !arg.is_hide_set()
}

fn usage(command: &Command) -> String {
    command.clone().render_usage().to_string().trim_start_matches("Usage: ").to_owned()
}

fn table(title: &str, args: &[&Arg]) -> String {
    if args.is_empty() {
        return String::new();
    }
    let mut text = format!("\n| {title} | meaning |\n|---|---|\n");
    for arg in args {
        let words: Vec<String> =
            arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
        let is_switch = !arg.get_action().takes_values();
        let words = if words.is_empty() || is_switch { String::new() } else { format!(" ({})", words.join(", ")) };
        let defaults: Vec<String> =
            arg.get_default_values().iter().map(|value| value.to_string_lossy().into()).collect();
        let default = match defaults.is_empty() || is_switch {
            true => String::new(),
            false => format!(" Default: `{}`.", defaults.join(", ")),
        };
        let help = plain(arg.get_help()).replace('|', "\\|");
        text += &format!("| `{}` | {help}{words}.{default} |\n", name(arg).replace('|', "\\|"));
    }
    text
}

/// `-o, --output <OUTPUT>`
fn name(arg: &Arg) -> String {
    let value = arg.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str());
    let value = match (arg.is_positional(), arg.get_action().takes_values()) {
        (true, _) => return format!("[{value}]"),
        (false, true) => format!(" <{value}>"),
        (false, false) => String::new(),
    };
    let short = arg.get_short().map_or_else(String::new, |short| format!("-{short}, "));
    format!("{short}--{}{value}", arg.get_long().unwrap_or_default())
}

fn plain(text: Option<&StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default().trim_end().to_owned()
}
