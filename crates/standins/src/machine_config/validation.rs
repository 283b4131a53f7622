//! Checks of MachineConfigs. If one fails, the pool is `RenderDegraded`, and its nodes keep their config.

use kube::ResourceExt;
use serde_json::Value;

use super::MachineConfig;

/// The extensions that the operating system offers.
const EXTENSIONS: [&str; 7] =
    ["ipsec", "kerberos", "kernel-devel", "sandboxed-containers", "sysstat", "two-node-ha", "usbguard"];

/// Parts of an Ignition config that work only on the first boot, or not at all.
const SECTIONS: [(&str, &str); 3] = [
    ("/kernelArguments", "kernelArguments of Ignition (use the MachineConfig's)"),
    ("/storage/directories", "directories"),
    ("/storage/links", "links"),
];

/// The largest object that the API server stores.
const SIZE_LIMIT: usize = 1_572_864;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    #[error("no MachineConfigs found matching selector {0}")]
    NothingSelected(String),
    #[error("MachineConfig {config} has an Ignition config of version {version:?}, which is not supported")]
    Version { config: String, version: String },
    #[error("MachineConfig {config} has {section}, which machines that run cannot take")]
    Section { config: String, section: &'static str },
    #[error("MachineConfig {config} appends to file {path}, which is not supported")]
    Append { config: String, path: String },
    #[error("MachineConfig {config} has user {user:?}; only \"core\" is supported")]
    User { config: String, user: String },
    #[error("MachineConfig {config} wants extension {extension:?}, which does not exist")]
    Extension { config: String, extension: String },
    #[error("the rendered config has {bytes} bytes, which is more than the {SIZE_LIMIT} that can be stored")]
    TooLarge { bytes: usize },
}

impl RenderError {
    /// A stable word for the kind of failure.
    pub fn reason(&self) -> &'static str {
        match self {
            RenderError::NothingSelected(_) => "NothingSelected",
            RenderError::Version { .. } => "UnsupportedVersion",
            RenderError::Section { .. } => "UnsupportedSection",
            RenderError::Append { .. } => "UnsupportedAppend",
            RenderError::User { .. } => "UnsupportedUser",
            RenderError::Extension { .. } => "UnknownExtension",
            RenderError::TooLarge { .. } => "TooLarge",
        }
    }
}

/// Whether one MachineConfig can be part of a rendered one.
pub(super) fn check(object: &MachineConfig) -> Result<(), RenderError> {
    let config = object.name_any();
    let ignition = object.data.pointer("/spec/config").unwrap_or(&Value::Null);
    if ignition.as_object().is_some_and(|map| !map.is_empty()) {
        let version = ignition.pointer("/ignition/version").and_then(Value::as_str).unwrap_or_default();
        if !is_supported(version) {
            return Err(RenderError::Version { config, version: version.to_owned() });
        }
    }
    for (pointer, section) in SECTIONS {
        if ignition.pointer(pointer).is_some_and(is_given) {
            return Err(RenderError::Section { config, section });
        }
    }
    for file in entries(ignition.pointer("/storage/files")) {
        if is_given(&file["append"]) {
            let path = file["path"].as_str().unwrap_or_default().to_owned();
            return Err(RenderError::Append { config, path });
        }
    }
    for user in entries(ignition.pointer("/passwd/users")) {
        if user["name"] != "core" {
            let user = user["name"].as_str().unwrap_or_default().to_owned();
            return Err(RenderError::User { config, user });
        }
    }
    for extension in entries(object.data.pointer("/spec/extensions")).filter_map(Value::as_str) {
        if !EXTENSIONS.contains(&extension) {
            return Err(RenderError::Extension { config, extension: extension.to_owned() });
        }
    }
    Ok(())
}

/// Whether a rendered spec can be stored.
pub(super) fn check_size(spec: &Value) -> Result<(), RenderError> {
    let bytes = spec.to_string().len();
    if bytes > SIZE_LIMIT { Err(RenderError::TooLarge { bytes }) } else { Ok(()) }
}

fn is_supported(version: &str) -> bool {
    let mut numbers = version.split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(2)), Some(Ok(_))) => true,
        (Some(Ok(3)), Some(Ok(minor))) => minor <= 5,
        _ => false,
    }
}

fn is_given(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    }
}

fn entries(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::machine_config::test_objects::machine_config;

    #[test]
    fn what_running_machines_cannot_take_is_an_error_with_the_name_of_the_config() {
        let ignition = |mut config: Value| {
            config["ignition"] = json!({"version": "3.2.0"});
            json!({"config": config})
        };
        let cases = [
            (json!({}), None),
            (json!({"config": {}}), None),
            (json!({"kernelArguments": ["psi=1"], "extensions": ["usbguard"]}), None),
            (json!({"config": {"ignition": {"version": "2.2.0"}}}), None),
            (json!({"config": {"ignition": {"version": "3.5.0"}}}), None),
            (ignition(json!({"passwd": {"users": [{"name": "core"}]}, "storage": {"directories": []}})), None),
            (json!({"config": {"ignition": {"version": "3.6.0"}}}), Some("UnsupportedVersion")),
            (json!({"config": {"ignition": {"version": "1"}}}), Some("UnsupportedVersion")),
            (json!({"config": {"storage": {"files": []}}}), Some("UnsupportedVersion")),
            (ignition(json!({"kernelArguments": {"shouldExist": ["a"]}})), Some("UnsupportedSection")),
            (ignition(json!({"storage": {"directories": [{"path": "/a"}]}})), Some("UnsupportedSection")),
            (ignition(json!({"storage": {"links": [{"path": "/a"}]}})), Some("UnsupportedSection")),
            (ignition(json!({"storage": {"files": [{"path": "/a", "append": [{}]}]}})), Some("UnsupportedAppend")),
            (ignition(json!({"passwd": {"users": [{"name": "core"}, {"name": "eve"}]}})), Some("UnsupportedUser")),
            (json!({"extensions": ["games"]}), Some("UnknownExtension")),
        ];
        for (spec, expected) in cases {
            let refused = check(&machine_config("50-x", "worker", spec.clone())).err();
            assert_eq!(refused.as_ref().map(RenderError::reason), expected, "{spec}: {refused:?}");
            assert!(refused.is_none_or(|error| error.to_string().contains("MachineConfig 50-x ")));
        }
        assert!(check_size(&json!("x".repeat(SIZE_LIMIT - 2))).is_ok());
        assert_eq!(check_size(&json!("x".repeat(SIZE_LIMIT))).err().map(|error| error.reason()), Some("TooLarge"));
    }
}
