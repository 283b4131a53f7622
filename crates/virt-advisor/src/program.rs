//! Under which name the program was started, and what that changes: kubectl, its completion and `oc adm must-gather` find programs by
//! their file names.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

use clap::Command;

/// The name of the program itself.
const NAME: &str = "virt-advisor";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// `virt-advisor`, or any other name.
    Program,
    /// `kubectl virt-advisor`.
    Plugin,
    /// What kubectl asks for completions of its plugin.
    Completion,
    /// What `oc adm must-gather` starts.
    Gather,
}

impl Role {
    pub(crate) fn of(program: Option<&OsStr>) -> Self {
        let name = program.and_then(|program| Path::new(program).file_stem()?.to_str());
        match name {
            Some("kubectl-virt_advisor") => Role::Plugin,
            Some("kubectl_complete-virt_advisor") => Role::Completion,
            Some("gather") => Role::Gather,
            _ => Role::Program,
        }
    }

    fn current() -> Self {
        Role::of(std::env::args_os().next().as_deref())
    }
}

/// The name to print before a command.
pub(crate) fn name() -> &'static str {
    name_in(Role::current())
}

fn name_in(role: Role) -> &'static str {
    match role {
        Role::Plugin | Role::Completion => "kubectl virt-advisor",
        Role::Program | Role::Gather => NAME,
    }
}

/// The command line. `oc adm must-gather` starts `/usr/bin/gather` without arguments, so under that name this is `gather`.
pub(crate) fn arguments(mut given: Vec<OsString>) -> Vec<OsString> {
    if Role::of(given.first().map(OsString::as_os_str)) == Role::Gather {
        given.splice(1..1, ["gather".into(), "--must-gather".into()]);
    }
    given
}

/// The command with this name in its usage and in its examples.
pub(crate) fn named(command: Command, name: &str) -> Command {
    fn renamed(command: Command, name: &str) -> Command {
        let examples = command.get_after_help().map(ToString::to_string);
        let command = match examples {
            Some(examples) => command.after_help(example_lines(&examples, name)),
            None => command,
        };
        command.mut_subcommands(|below| renamed(below, name))
    }
    renamed(command, name).bin_name(name)
}

/// Lines that begin with the name of the program are commands.
fn example_lines(text: &str, name: &str) -> String {
    let line = |line: &str| match line.trim_start().strip_prefix(NAME) {
        Some(rest) => format!("{}{name}{rest}", &line[..line.len() - line.trim_start().len()]),
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_program_chooses_what_it_does_and_how_it_is_called() {
        for (program, role, name) in [
            ("/usr/local/bin/virt-advisor", Role::Program, "virt-advisor"),
            ("/home/me/.krew/bin/kubectl-virt_advisor", Role::Plugin, "kubectl virt-advisor"),
            ("kubectl-virt_advisor.exe", Role::Plugin, "kubectl virt-advisor"),
            ("kubectl_complete-virt_advisor", Role::Completion, "kubectl virt-advisor"),
            ("/usr/bin/gather", Role::Gather, "virt-advisor"),
        ] {
            let found = Role::of(Some(OsStr::new(program)));
            assert_eq!((found, name_in(found)), (role, name), "{program}");
        }
        assert_eq!(Role::of(None), Role::Program);
    }

    #[test]
    fn must_gather_needs_no_arguments() {
        let arguments = |given: &[&str]| arguments(given.iter().map(OsString::from).collect());
        assert_eq!(arguments(&["/usr/bin/gather"]), ["/usr/bin/gather", "gather", "--must-gather"]);
        assert_eq!(arguments(&["gather", "-o", "x"]), ["gather", "gather", "--must-gather", "-o", "x"]);
        assert_eq!(arguments(&["/virt-advisor", "gather"]), ["/virt-advisor", "gather"]);
        assert_eq!(arguments(&[]), [] as [&str; 0]);
    }

    #[test]
    fn usage_and_examples_have_the_name_of_the_plugin() {
        let list = Command::new("list").after_help("Examples:\n  virt-advisor list\n  kubectl get vpcfg");
        let mut command = named(Command::new(NAME).subcommand(list), "kubectl virt-advisor");
        command.build();
        let help = command.find_subcommand_mut("list").unwrap().render_help().to_string();
        assert!(help.contains("Usage: kubectl virt-advisor list\n"), "{help}");
        assert!(help.ends_with("  kubectl virt-advisor list\n  kubectl get vpcfg\n"), "{help}");
    }
}
