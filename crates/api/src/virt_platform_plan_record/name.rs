//! The names of records: the profile, a dash and a number.

use crate::virt_platform_config::Profile;

/// `load-aware-rebalancing-7`
pub fn name(profile: Profile, number: u32) -> String {
    format!("{profile}-{number}")
}

/// The number in the name of a record of this profile.
pub fn number(profile: Profile, name: &str) -> Option<u32> {
    let digits = name.strip_prefix(profile.as_str())?.strip_prefix('-')?;
    digits.parse().ok().filter(|number: &u32| number.to_string() == digits)
}
