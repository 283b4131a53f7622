//! The scenarios that are part of the program.

use super::{Scenario, parse};

/// The name and the text of each scenario, in the order of the list.
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

pub fn find(name: &str) -> Option<Scenario> {
    let (_, text) = FILES.iter().find(|(known, _)| *known == name)?;
    parse(text).ok().and_then(|scenarios| scenarios.into_iter().next())
}

pub fn all() -> impl Iterator<Item = Scenario> {
    FILES.iter().filter_map(|(name, _)| find(name))
}
