//! `virt-advisor explain`: what a profile does, in words. Needs no cluster: everything comes from the profile and the schema.

mod options;
mod text;

use advisor::{Access, Facts, Profile, ProfileInfo, Requirement, profiles};
use api::virt_platform_config::Severity;
use clap::builder::PossibleValuesParser;
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::{Document, OutputArgs};
use options::OptionExplanation;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  virt-advisor explain
  virt-advisor explain load-aware-rebalancing")]
pub(crate) struct Args {
    /// The profile to explain [default: list all]
    #[arg(value_parser = names())]
    profile: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// The profiles that were asked for.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProfileExplanation {
    pub(crate) profiles: Vec<Explained>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Explained {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) category: &'static str,
    pub(crate) impact_summary: &'static str,
    /// The impact to expect before there is a plan. High means that nodes may reboot.
    pub(crate) impact_severity: Severity,
    /// Objects that its plans may create, change or delete.
    pub(crate) manages: Vec<ObjectAccess>,
    /// Objects that its plans depend on.
    pub(crate) reads: Vec<ObjectAccess>,
    /// What must exist, each with what to do if it does not.
    pub(crate) requires: Vec<String>,
    pub(crate) options: Vec<OptionExplanation>,
    /// Its page, from the root of the repository.
    pub(crate) documentation: &'static str,
}

#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectAccess {
    /// One object, or the kind if it is about all objects of a kind.
    pub(crate) object: String,
    /// `create`, `change`, `delete` or `read`.
    pub(crate) what: Vec<&'static str>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let wanted = profiles::PROFILES
        .iter()
        .filter(|profile| args.profile.as_ref().is_none_or(|name| profile.about().name == name));
    let body = ProfileExplanation { profiles: wanted.map(|profile| Explained::new(*profile)).collect() };
    let document = Document::new("ProfileExplanation", body);
    let is_list = args.profile.is_none();
    args.output.print(&document, || text::render(&document.body, is_list, terminal::width()))
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(profiles::PROFILES.iter().map(|profile| profile.about().name))
}

impl Explained {
    pub(crate) fn new(profile: &dyn Profile) -> Self {
        let ProfileInfo { name, description, category, impact_summary, impact, options_member, documentation, .. } =
            profile.about();
        let access = profile.access();
        let (manages, reads): (Vec<_>, Vec<_>) = access
            .iter()
            .partition(|access| matches!(access, Access::Create(_) | Access::Change(_) | Access::Delete(_)));
        let manages = objects(&manages);
        let mut reads = objects(&reads);
        reads.retain(|read| !manages.iter().any(|managed| managed.object == read.object));
        Explained {
            name,
            description,
            category,
            impact_summary,
            impact_severity: *impact,
            manages,
            reads,
            requires: requirements(profile),
            options: options_member.map(options::of_member).unwrap_or_default(),
            documentation,
        }
    }
}

/// Each object once, with everything that is done to it.
fn objects(access: &[&Access]) -> Vec<ObjectAccess> {
    let mut objects: Vec<ObjectAccess> = Vec::new();
    for access in access {
        let object = access.object().map_or_else(|| format!("all {}", access.kind().plural), ToString::to_string);
        let what = match access {
            Access::Create(_) => "create",
            Access::Change(_) => "change",
            Access::Delete(_) => "delete",
            Access::Read(_) | Access::Get(_) | Access::ReadAny(_) | Access::List(_) => "read",
        };
        match objects.iter_mut().find(|known| known.object == object) {
            Some(known) if !known.what.contains(&what) => known.what.push(what),
            Some(_) => {}
            None => objects.push(ObjectAccess { object, what: vec![what] }),
        }
    }
    objects
}

/// What the profile requires with its default options.
fn requirements(profile: &dyn Profile) -> Vec<String> {
    let requirements = profile.resolve(None).map(|planner| planner.requirements(&Facts::default()));
    let told = |requirement: Requirement| match requirement {
        Requirement::Kind { kind, hint } => format!("{} ({}). {hint}", kind.kind, kind.group),
        Requirement::Object { reference, hint } => format!("{reference}. {hint}"),
        Requirement::Unmet(text) => text,
    };
    requirements.unwrap_or_default().into_iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    #[test]
    fn a_profile_is_explained_from_its_own_words_and_the_schema() {
        for (name, profile) in [("explain_load_aware", 0), ("explain_density", 1)] {
            let body = ProfileExplanation { profiles: vec![Explained::new(profiles::PROFILES[profile])] };
            golden::assert(name, |width| text::render(&body, false, width));
        }
    }

    #[test]
    fn all_profiles_are_listed() {
        let body = ProfileExplanation { profiles: profiles::PROFILES.iter().map(|it| Explained::new(*it)).collect() };
        let text = text::render(&body, true, 80);
        for profile in profiles::PROFILES {
            assert!(text.contains(profile.about().name), "{text}");
        }
    }
}
