//! The name of a lab on the command line: several labs of one user can run at a time.

const LONGEST: usize = 40;

/// Which lab is meant.
#[derive(clap::Args)]
pub(crate) struct LabName {
    /// The name of the lab
    #[arg(long, default_value = "lab", value_parser = parse)]
    pub(crate) name: String,
}

/// The name becomes part of a path.
fn parse(text: &str) -> Result<String, String> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if text.is_empty() || text.len() > LONGEST || !text.chars().all(is_allowed) || text.starts_with('-') {
        return Err(format!("expected at most {LONGEST} lowercase letters, digits and hyphens, such as lab-2"));
    }
    Ok(text.to_owned())
}

/// The option that names a lab, with a space before it; empty for the default name.
pub(crate) fn option(name: &str) -> String {
    if name == "lab" { String::new() } else { format!(" --name {name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for good in ["lab", "lab-2", "7"] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for bad in ["", "../lab", "Lab", "a b", "-a", "a/b", &"a".repeat(41)] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
