//! All profiles. To add one, write its folder and add a line here; `docs/profile-development-guide.md` shows how.

pub mod example;
pub mod higher_density;
pub mod load_aware;

use crate::Profile;

pub static PROFILES: &[&dyn Profile] = &[&load_aware::LoadAware, &higher_density::HigherDensity, &example::Example];

pub fn find(name: &str) -> Option<&'static dyn Profile> {
    PROFILES.iter().copied().find(|profile| profile.about().name == name)
}

#[cfg(test)]
mod tests {
    use api::virt_platform_config::{LoadAwareOptions, Options, Profile, VirtHigherDensityOptions};

    use super::*;

    #[test]
    fn every_profile_of_the_api_is_registered_and_no_other() {
        let registered: Vec<_> = PROFILES.iter().map(|profile| profile.about().name).collect();
        let known: Vec<_> = Profile::ALL.iter().map(|profile| profile.as_str()).collect();
        assert_eq!(registered, known);
    }

    #[test]
    fn every_member_of_the_options_belongs_to_one_profile() {
        let options = Options {
            load_aware: Some(LoadAwareOptions::default()),
            virt_higher_density: Some(VirtHigherDensityOptions::default()),
        };
        let written = serde_json::to_value(options).unwrap();
        let mut members: Vec<_> = PROFILES.iter().filter_map(|profile| profile.about().options_member).collect();
        members.sort_unstable();
        assert_eq!(members, written.as_object().unwrap().keys().collect::<Vec<_>>());
    }

    #[test]
    fn every_profile_is_documented_and_described() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for profile in PROFILES {
            let about = profile.about();
            assert!(root.join(about.documentation).is_file(), "{}: no {}", about.name, about.documentation);
            assert!(!about.description.is_empty() && !about.impact_summary.is_empty(), "{}", about.name);
        }
    }

    /// W36 (scattered profile code), D14 (profile-free operator): a new profile is a folder here and a word in the
    /// API; what carries out plans knows none by name.
    #[test]
    fn neither_the_operator_nor_the_state_machine_knows_a_profile() {
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut words = vec!["load_aware", "LoadAware", "higher_density", "HigherDensity"];
        words.extend(PROFILES.iter().map(|profile| profile.about().name));
        words.extend(PROFILES.iter().filter_map(|profile| profile.about().options_member));
        let mut folders = vec![crates.join("operator/src"), crates.join("advisor/src/machine")];
        let mut files = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.file_stem().is_some_and(|name| name == "tests") {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                let known = words.iter().find(|word| text.contains(**word));
                assert_eq!(known, None, "{}", path.display());
                files += 1;
            }
        }
        assert!(files > 20, "{files} files");
    }
}
