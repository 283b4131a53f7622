//! Rules for all definitions: everything is bounded and described, and nothing shows that they were derived from Rust.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::{Value, json};

use super::{crds, virt_platform_config, virt_platform_plan_record, virtual_machine};

fn schema(crd: &CustomResourceDefinition) -> &JSONSchemaProps {
    crd.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap()
}

/// The schema at a path such as `spec.options.loadAware`, as JSON.
fn at(crd: &CustomResourceDefinition, path: &str) -> Value {
    let pointer: String = path.split('.').map(|name| format!("/properties/{name}")).collect();
    serde_json::to_value(schema(crd)).unwrap().pointer(&pointer).unwrap_or_else(|| panic!("no {path}")).clone()
}

/// Calls `check` with the path and the schema of every node.
fn walk(path: &str, schema: &JSONSchemaProps, check: &mut impl FnMut(&str, &JSONSchemaProps)) {
    check(path, schema);
    for (name, property) in schema.properties.iter().flatten() {
        walk(&format!("{path}.{name}"), property, check);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        walk(&format!("{path}[]"), items, check);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        walk(&format!("{path}{{}}"), values, check);
    }
}

fn walk_all(mut check: impl FnMut(&str, &JSONSchemaProps)) {
    for crd in crds() {
        walk(&crd.spec.names.kind, schema(&crd), &mut check);
    }
}

#[test]
fn every_string_list_and_map_is_bounded() {
    let mut unbounded = Vec::new();
    walk_all(|path, schema| {
        let is_free_text = schema.enum_.is_none() && schema.format.as_deref() != Some("date-time");
        let missing = match schema.type_.as_deref() {
            Some("string") if is_free_text && schema.max_length.is_none() => "maxLength",
            None if schema.max_length.is_none() => "maxLength",
            Some("array") if schema.max_items.is_none() => "maxItems",
            Some("object") if schema.properties.is_none() && schema.max_properties.is_none() => "maxProperties",
            _ => return,
        };
        unbounded.push(format!("{path}: no {missing}"));
    });
    assert!(unbounded.is_empty(), "{unbounded:#?}");
}

#[test]
fn every_field_has_a_description() {
    let mut silent = Vec::new();
    walk_all(|path, schema| {
        for (name, property) in schema.properties.iter().flatten() {
            if property.description.as_deref().unwrap_or_default().is_empty() {
                silent.push(format!("{path}.{name}"));
            }
        }
    });
    assert!(silent.is_empty(), "{silent:#?}");
}

#[test]
fn nothing_shows_that_the_schema_was_derived() {
    walk_all(|path, schema| {
        assert_eq!(schema.nullable, None, "{path} is nullable");
        assert_eq!(schema.title, None, "{path} has a title");
        assert_eq!(schema.any_of, None, "{path} has anyOf");
        assert!(schema.default.as_ref().is_none_or(|value| !value.0.is_null()), "{path} defaults to null");
        assert!(schema.enum_.iter().flatten().all(|value| !value.0.is_null()), "{path} lists null");
        assert!(schema.type_.is_some() || schema.x_kubernetes_int_or_string == Some(true), "{path} has no type");
        let format = schema.format.as_deref();
        assert!(matches!(format, None | Some("int32" | "int64" | "date-time")), "{path} has format {format:?}");
    });
}

#[test]
fn a_status_has_no_rules_and_applied_options_no_defaults() {
    for crd in crds() {
        let status = &schema(&crd).properties.as_ref().unwrap()["status"];
        walk("status", status, &mut |path, schema| {
            assert_eq!(schema.x_kubernetes_validations, None, "{path}");
            if path.starts_with("status.appliedOptions") {
                assert_eq!(schema.default, None, "{path}");
            }
        });
    }
}

/// The values of a record are of another time: a rule or a default of today must not refuse or change them.
#[test]
fn a_record_has_no_rules_and_no_defaults_but_that_it_is_immutable() {
    let record = virt_platform_plan_record();
    let spec = &schema(&record).properties.as_ref().unwrap()["spec"];
    let mut rules = Vec::new();
    walk("spec", spec, &mut |path, schema| {
        assert_eq!(schema.default, None, "{path}");
        rules.extend(schema.x_kubernetes_validations.iter().flatten().map(|rule| (path.to_owned(), rule.rule.clone())));
    });
    assert_eq!(rules, [("spec".to_owned(), "self == oldSelf".to_owned())]);
    let status = &schema(&record).properties.as_ref().unwrap()["status"];
    walk("status", status, &mut |path, schema| {
        let expected = (path == "status").then(|| json!({"outcome": "Running"}));
        assert_eq!(schema.default.as_ref().map(|default| &default.0), expected.as_ref(), "{path}");
    });
}

#[test]
fn defaults_are_those_of_the_api() {
    let config = virt_platform_config();
    let machine = virtual_machine();
    let cases = [
        (&config, "spec.action", json!("DryRun")),
        (&config, "spec.failurePolicy", json!("Abort")),
        (&config, "spec.bypassOptimisticLock", json!(false)),
        (&config, "spec.waitTimeout", Value::Null),
        (&config, "spec.options", Value::Null),
        (&config, "spec.options.loadAware.deschedulingIntervalSeconds", json!(60)),
        (&config, "spec.options.loadAware.mode", json!("Automatic")),
        (&config, "spec.options.loadAware.enablePSIMetrics", json!(true)),
        (&config, "spec.options.loadAware.devDeviationThresholds", json!("AsymmetricLow")),
        (&config, "spec.options.loadAware.evictionLimitTotal", Value::Null),
        (&config, "spec.options.loadAware.evictionLimitNode", Value::Null),
        (&config, "spec.options.virtHigherDensity.enableSwap", json!(true)),
        (&config, "spec.options.virtHigherDensity.ksmConfiguration", Value::Null),
        (&config, "spec.options.virtHigherDensity.ksmConfiguration.enabled", json!(true)),
        (&config, "spec.options.virtHigherDensity.memoryToRequestRatio", Value::Null),
        (&machine, "spec.utilization", json!({})),
        (&machine, "spec.utilization.cpu", json!("0.5")),
        (&machine, "spec.utilization.memory", json!("0.8")),
        (&machine, "spec.running", json!(true)),
    ];
    for (crd, path, default) in cases {
        assert_eq!(at(crd, path)["default"], default, "{path}");
    }
}

#[test]
fn required_fields_are_those_of_the_api() {
    let config = virt_platform_config();
    assert_eq!(schema(&config).required, Some(vec!["spec".to_owned()]));
    assert_eq!(at(&config, "spec")["required"], json!(["profile"]));
    assert_eq!(at(&config, "status")["required"], Value::Null);
    assert_eq!(at(&config, "status.items")["items"]["required"], json!(["name", "targetRef"]));
    let record = virt_platform_plan_record();
    assert_eq!(schema(&record).required, Some(vec!["spec".to_owned()]));
    let always = ["configUid", "generation", "impactSeverity", "operatorVersion", "planDigest", "profile", "startedAt"];
    assert_eq!(at(&record, "spec")["required"], json!(always));
    let always = ["existed", "fieldManager", "name", "operation", "targetRef"];
    assert_eq!(at(&record, "spec.items")["items"]["required"], json!(always));
    assert_eq!(at(&record, "status.items")["items"]["required"], json!(["name", "state"]));
    let machine = virtual_machine();
    assert_eq!(schema(&machine).required, Some(vec!["spec".to_owned()]));
    assert_eq!(at(&machine, "spec")["required"], json!(["resources"]));
    assert_eq!(at(&machine, "spec.resources")["required"], json!(["cpu", "memory"]));
}

#[test]
fn lists_with_identity_merge_by_their_key() {
    let config = virt_platform_config();
    for (path, key) in [("status.items", "name"), ("status.conditions", "type")] {
        let list = at(&config, path);
        assert_eq!(list["x-kubernetes-list-type"], "map", "{path}");
        assert_eq!(list["x-kubernetes-list-map-keys"], json!([key]), "{path}");
    }
}

/// W34 (no events or columns): short name, category, and columns for drift and plan.
#[test]
fn names_and_columns_are_those_users_know() {
    let columns = |crd: &CustomResourceDefinition, wide: bool| -> Vec<String> {
        let columns = crd.spec.versions[0].additional_printer_columns.iter().flatten();
        columns.filter(|column| wide || column.priority.is_none()).map(|column| column.name.clone()).collect()
    };
    let config = virt_platform_config();
    assert_eq!(config.spec.scope, "Cluster");
    assert_eq!(config.spec.names.short_names, Some(vec!["vpcfg".to_owned()]));
    assert_eq!(config.spec.names.categories, Some(vec!["advisor".to_owned()]));
    assert_eq!(columns(&config, false), ["Action", "Impact", "Phase", "Age"]);
    assert_eq!(columns(&config, true), ["Action", "Impact", "Phase", "Age", "Drifted", "Plan"]);
    let record = virt_platform_plan_record();
    assert_eq!(record.spec.scope, "Cluster");
    assert_eq!(record.spec.names.short_names, Some(vec!["vpcrec".to_owned()]));
    assert_eq!(record.spec.names.categories, Some(vec!["advisor".to_owned()]));
    assert_eq!(columns(&record, false), ["Profile", "Outcome", "Approved By", "Started", "Finished"]);
    assert_eq!(columns(&record, true).last().unwrap(), "Plan");
    let machine = virtual_machine();
    assert_eq!(machine.spec.scope, "Namespaced");
    assert_eq!(machine.spec.names.short_names, Some(vec!["vm".to_owned(), "vms".to_owned()]));
    assert_eq!(machine.spec.names.categories, Some(vec!["all".to_owned()]));
    assert_eq!(columns(&machine, false), ["Phase", "CPU", "Memory", "CPU-Util", "Mem-Util", "Node", "Age"]);
    assert_eq!(columns(&machine, true).last().unwrap(), "Pod");
}
