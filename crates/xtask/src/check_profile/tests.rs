use advisor::profiles::PROFILES;

use super::*;

fn tree() -> Tree {
    Tree::read(&crate::root()).unwrap()
}

/// The tree in which one text of one file reads otherwise.
fn without(path: &str, text: &str) -> Tree {
    let mut tree = tree();
    let file = tree.0.get_mut(path).unwrap_or_else(|| panic!("{path} is not read"));
    assert!(file.contains(text), "{path} has no {text:?}");
    *file = file.replace(text, "");
    tree
}

#[test]
fn every_profile_there_is_is_complete() {
    let tree = tree();
    for name in PROFILES.iter().map(|profile| profile.about().name) {
        assert_eq!(missing(name, &tree), [""; 0], "{name}");
    }
}

#[test]
fn whatever_is_forgotten_is_told_with_its_file() {
    let api = "crates/api/src/virt_platform_config";
    let profiles = "crates/advisor/src/profiles";
    for (path, text, told) in [
        (format!("{api}/spec.rs"), "VirtHigherDensity = \"virt-higher-density\",", "the enum Profile"),
        (format!("{api}/spec.rs"), "/// - virt-higher-density: ", "the text of the field `profile`"),
        (format!("{api}/spec.rs"), "options.virtHigherDensity can only be used", "a CEL rule"),
        (format!("{api}/options.rs"), "pub virt_higher_density: Option<", "in the union Options"),
        (format!("{api}/mod.rs"), "VirtHigherDensityOptions", "the re-export of VirtHigherDensityOptions"),
        (format!("{profiles}/mod.rs"), "pub mod higher_density;", "`pub mod higher_density;`"),
        (format!("{profiles}/mod.rs"), "&higher_density::HigherDensity", "the registry PROFILES"),
        (format!("{profiles}/mod.rs"), "virt_higher_density: ", "the literal of Options"),
        ("crates/advisor/tests/model/profile.rs".to_owned(), "virt_higher_density: ", "the literal of Options"),
        (format!("{profiles}/higher_density/README.md"), "\n## Impact\n", "the section \"Impact\""),
        (format!("{profiles}/higher_density/profile.rs"), "documentation: ", "`documentation` of the ProfileInfo"),
        ("crates/advisor/src/access/tests.rs".to_owned(), "\"virt-higher-density\" =>", "clusters and options"),
        ("docs/README.md".to_owned(), "profiles/higher_density/README.md)", "a link to its page"),
        ("docs/api.md".to_owned(), "- virt-higher-density: ", "`make generate`"),
        (".github/CODEOWNERS".to_owned(), "higher_density/ ", "its owners"),
        ("config/rbac/role.yaml".to_owned(), "virt-higher-density", "the rights that it declares"),
        ("dist/install.yaml".to_owned(), "- virt-higher-density\n", "its name"),
        ("CHANGELOG.md".to_owned(), "`virt-higher-density`", "a line about it"),
    ] {
        let list = missing("virt-higher-density", &without(&path, text));
        assert!(list.iter().any(|line| line.contains(told)), "{path} without {text:?}: {list:#?}");
    }
}

#[test]
fn tests_and_a_sample_may_be_in_any_file() {
    let mut tree = tree();
    tree.0.retain(|path, _| !path.starts_with("crates/advisor/src/profiles/higher_density/tests"));
    tree.0.retain(|path, _| !path.starts_with("config/samples/"));
    let list = missing("virt-higher-density", &tree);
    assert_eq!(list.len(), 2, "{list:#?}");
    assert!(
        list[0].ends_with("higher_density/tests.rs: tests") && list[1].starts_with("config/samples: "),
        "{list:#?}"
    );
}

#[test]
fn of_a_profile_that_nobody_has_begun_everything_is_missing() {
    let list = missing("migration-banner", &tree());
    assert!(list[0].contains("the enum Profile") && list.len() > 8, "{list:#?}");
    assert!(list.iter().any(|line| line.contains("a ProfileInfo with `name: \"migration-banner\"`")), "{list:#?}");
}
