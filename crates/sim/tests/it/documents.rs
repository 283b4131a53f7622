//! The guide describes the format of scenarios. That the published schema is current is a test of `rebalance-lab`.

use std::path::Path;

/// Every field of the schema is described in the guide's reference of the format.
#[test]
fn the_guide_describes_every_field_of_the_format() {
    let guide =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab/simulator.md")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&sim::scenario::schema()).unwrap();
    let mut fields = Vec::new();
    properties(&schema, &mut fields);
    fields.sort();
    fields.dedup();
    assert!(fields.len() > 60, "{fields:?}");
    let missing: Vec<&String> = fields.iter().filter(|field| !guide.contains(&format!("`{field}`"))).collect();
    assert!(missing.is_empty(), "the guide does not name {missing:?}");
}

fn properties(value: &serde_json::Value, fields: &mut Vec<String>) {
    if let Some(object) = value.as_object() {
        if let Some(properties) = object.get("properties").and_then(|properties| properties.as_object()) {
            fields.extend(properties.keys().cloned());
        }
        object.values().for_each(|value| properties_of(value, fields));
    }
}

fn properties_of(value: &serde_json::Value, fields: &mut Vec<String>) {
    match value {
        serde_json::Value::Array(list) => list.iter().for_each(|value| properties(value, fields)),
        value => properties(value, fields),
    }
}

#[test]
fn the_example_of_the_page_about_objects_of_the_reference_is_a_scenario() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab/simulation-scenarios.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("```yaml\n").unwrap();
    let tasks = rest.split("```").next().unwrap();
    let text = format!("name: example\nnodes: [{{name: n}}]\nvms: [{{name: v}}]\n{tasks}");
    let scenario = sim::scenario::parse(&text).unwrap_or_else(|error| panic!("{error}")).remove(0);
    assert!(scenario.tasks[0].when.is_some() && scenario.tasks[0].window.is_some());
    assert_eq!(sim::scenario::parse(&scenario.to_yaml()).unwrap(), [scenario], "it is written as it was read");
}
