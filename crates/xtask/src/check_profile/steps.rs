//! The steps to a profile, in the order in which people take them.

use super::tree::Tree;

const PROFILES: &str = "crates/advisor/src/profiles/";
const API: &str = "crates/api/src/virt_platform_config/";
const HEADINGS: [&str; 5] = ["What it configures", "Options", "Prerequisites", "Impact", "How to undo it"];
/// Tests that write all members of the options.
const LITERALS: [&str; 2] = ["crates/advisor/src/profiles/mod.rs", "crates/advisor/tests/model/profile.rs"];

/// What a profile lacks: the file, and what has to be in it.
pub(super) fn missing(name: &str, tree: &Tree) -> Vec<String> {
    let mut missing = Missing { tree, list: Vec::new() };
    missing.of_the_api(name);
    match folder(name, tree) {
        Some((folder, about)) => missing.of_the_folder(name, &folder, about),
        None => missing.list.push(format!("{PROFILES}<folder>/profile.rs: a ProfileInfo with `name: \"{name}\"`")),
    }
    missing.of_tests_and_pages(name);
    missing.of_generated_files(name);
    missing.list
}

/// The folder of a profile, and the text of the file that describes it.
fn folder<'a>(name: &str, tree: &'a Tree) -> Option<(String, &'a str)> {
    let is_about =
        |text: &str| text.contains("ProfileInfo = ProfileInfo {") && text.contains(&format!("name: \"{name}\""));
    let (path, about) = tree.under(PROFILES).find(|(_, text)| is_about(text))?;
    let folder = path.strip_prefix(PROFILES)?.split('/').next()?;
    Some((folder.to_owned(), about))
}

struct Missing<'a> {
    tree: &'a Tree,
    list: Vec<String>,
}

impl Missing<'_> {
    /// Notes what is missing unless the file contains the text.
    fn unless(&mut self, path: &str, text: &str, what: &str) {
        if !self.tree.has(path, text) {
            self.list.push(format!("{path}: {what}"));
        }
    }

    fn of_the_api(&mut self, name: &str) {
        let spec = format!("{API}spec.rs");
        self.unless(&spec, &format!("= \"{name}\","), "a line in the enum Profile");
        self.unless(&spec, &format!("/// - {name}: "), "a line about it in the text of the field `profile`");
    }

    fn of_the_folder(&mut self, name: &str, folder: &str, about: &str) {
        let registry = format!("{PROFILES}mod.rs");
        self.unless(&registry, &format!("pub mod {folder};"), &format!("`pub mod {folder};`"));
        self.unless(&registry, &format!("&{folder}::"), "a line in the registry PROFILES, at its place in the enum");
        if let Some(member) = quoted_after(about, "options_member: Some(") {
            self.of_options(name, member);
        }
        let has_tests = self.tree.under(&format!("{PROFILES}{folder}/tests")).any(|(_, text)| text.contains("#[test]"));
        if !has_tests {
            self.list.push(format!("{PROFILES}{folder}/tests.rs: tests"));
        }
        let page = format!("{PROFILES}{folder}/README.md");
        for heading in HEADINGS {
            self.unless(&page, &format!("\n## {heading}\n"), &format!("the section {heading:?}"));
        }
        if quoted_after(about, "documentation: ") != Some(page.as_str()) {
            self.list.push(format!("{PROFILES}{folder}: `documentation` of the ProfileInfo is not {page}"));
        }
        self.unless("docs/README.md", &format!("](../{page})"), "a link to its page");
        let owned = format!("/{PROFILES}{folder}/ ");
        self.unless(
            ".github/CODEOWNERS",
            &owned,
            "its owners: name them in config/project.yaml, then run `make generate`",
        );
    }

    fn of_options(&mut self, name: &str, member: &str) {
        let field = snake_case(member);
        let options = format!("{API}options.rs");
        let declaration = format!("pub {field}: Option<");
        self.unless(&options, &declaration, &format!("`{declaration}...>` in the union Options"));
        let kind = self.tree.0.get(&options).and_then(|text| text.split_once(&declaration)?.1.split('>').next());
        if let Some(kind) = kind.map(str::to_owned) {
            self.unless(&format!("{API}mod.rs"), &kind, &format!("the re-export of {kind}"));
        }
        let rule = format!("options.{member} can only be used with profile '{name}'");
        self.unless(&format!("{API}spec.rs"), &rule, &format!("a CEL rule with the message {rule:?}"));
        for path in LITERALS {
            self.unless(path, &format!("{field}: "), &format!("{field} in the literal of Options"));
        }
        let snapshot = format!("crates/api/tests/it/snapshots/explain_virtplatformconfig_spec_options_{member}.snap");
        self.unless(
            &snapshot,
            member,
            &format!("what `kubectl explain` prints: add `spec.options.{member}` to golden.rs"),
        );
    }

    fn of_tests_and_pages(&mut self, name: &str) {
        let case = "clusters and options that make it do everything it can do";
        self.unless("crates/advisor/src/access/tests.rs", &format!("\"{name}\" =>"), case);
        let line = format!("\n  profile: {name}\n");
        if !self.tree.under("config/samples/").any(|(_, text)| text.contains(&line)) {
            self.list.push(format!("config/samples: a sample with `profile: {name}`"));
        }
        self.unless("CHANGELOG.md", &format!("`{name}`"), "a line about it");
    }

    fn of_generated_files(&mut self, name: &str) {
        let entry = format!("- {name}\n");
        for path in ["config/crd/advisor.kubevirt.io_virtplatformconfigs.yaml", "dist/install.yaml"] {
            self.unless(path, &entry, "its name: run `make generate`");
        }
        self.unless("config/rbac/role.yaml", name, "the rights that it declares: run `make generate`");
        let snapshot = "crates/api/tests/it/snapshots/explain_virtplatformconfig_spec.snap";
        self.unless(
            snapshot,
            &format!("- {name}: "),
            "its text: run `INSTA_UPDATE=always cargo test -p virt-advisor-api`",
        );
        self.unless("docs/api.md", &format!("- {name}: "), "its text: run `make generate`");
    }
}

/// What is between the first quotes after a text.
fn quoted_after<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    text.split_once(before)?.1.strip_prefix('"')?.split('"').next()
}

fn snake_case(member: &str) -> String {
    let word = |c: char| if c.is_ascii_uppercase() { format!("_{}", c.to_ascii_lowercase()) } else { c.to_string() };
    member.chars().map(word).collect()
}
