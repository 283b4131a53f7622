//! The scenarios that come with the program.

use super::{Scenario, parse};

/// Name and text of each, in the order in which they are listed.
pub const FILES: [(&str, &str); 8] = [
    ("light", include_str!("../../scenarios/light.yaml")),
    ("mixed", include_str!("../../scenarios/mixed.yaml")),
    ("heavy", include_str!("../../scenarios/heavy.yaml")),
    ("progression", include_str!("../../scenarios/progression.yaml")),
    ("hotspot", include_str!("../../scenarios/hotspot.yaml")),
    ("drain", include_str!("../../scenarios/drain.yaml")),
    ("heterogeneous", include_str!("../../scenarios/heterogeneous.yaml")),
    ("week", include_str!("../../scenarios/week.yaml")),
];

/// The scenario of that name.
pub fn find(name: &str) -> Option<Scenario> {
    let (_, text) = FILES.iter().find(|(known, _)| *known == name)?;
    parse(text).ok().and_then(|scenarios| scenarios.into_iter().next())
}

/// All of them.
pub fn all() -> impl Iterator<Item = Scenario> {
    FILES.iter().filter_map(|(name, _)| find(name))
}
