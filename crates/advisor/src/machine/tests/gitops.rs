//! The health checks in `config/gitops`, run on a configuration in every phase: Lua for Argo CD, CEL for Flux.
//!
//! `UPDATE_DOCS=1 cargo test -p advisor gitops` writes the files that are generated.

use std::path::PathBuf;

use cel::{Context, Value as CelValue, parser::Parser};
use mlua::{Lua, LuaOptions, LuaSerdeExt, StdLib};

use super::{
    health::{Case, cases},
    *,
};

const CHECK: &str = "argocd/advisor.kubevirt.io/VirtPlatformConfig";

fn file(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../config/gitops").join(path)
}

fn read(path: &str) -> String {
    let path = file(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&read(path)).unwrap()
}

/// Writes the file, or compares it with what it should be.
fn assert_current(path: &str, expected: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(file(path).parent().unwrap()).unwrap();
        std::fs::write(file(path), expected).unwrap();
    }
    let hint = "run `UPDATE_DOCS=1 cargo test -p advisor gitops` and commit the result";
    assert!(std::fs::read_to_string(file(path)).is_ok_and(|text| text == expected), "{path} is out of date: {hint}");
}

/// Runs the health check as Argo CD does: in Lua 5.1, with its base library only.
fn argo_cd(object: &Value) -> (String, String) {
    let lua = Lua::new_with(StdLib::NONE, LuaOptions::default()).unwrap();
    assert!(lua.globals().get::<mlua::Value>("string").unwrap().is_nil(), "Argo CD loads no other library");
    lua.globals().set("obj", lua.to_value(object).unwrap()).unwrap();
    let health: mlua::Table = lua.load(read(&format!("{CHECK}/health.lua"))).eval().unwrap();
    (health.get("status").unwrap(), health.get("message").unwrap())
}

/// Evaluates the expressions as Flux does. An error means that Flux waits, as for an object that is in progress.
fn flux(object: &Value) -> Result<&'static str, String> {
    let (observed, generation) = (object.pointer("/status/observedGeneration"), &object["metadata"]["generation"]);
    if observed.is_some_and(|observed| observed != generation) {
        return Ok("InProgress");
    }
    let check = &yaml("flux/kustomization.yaml")["spec"]["healthCheckExprs"][0];
    let mut context = Context::default();
    for (name, value) in object.as_object().unwrap() {
        context.add_variable(name.as_str(), value.clone()).map_err(|error| error.to_string())?;
    }
    for (name, status) in [("inProgress", "InProgress"), ("failed", "Failed"), ("current", "Current")] {
        let Some(expression) = check[name].as_str() else { continue };
        let expression = Parser::default().parse(expression).map_err(|error| error.to_string())?;
        match CelValue::resolve(&expression, &context).map_err(|error| error.to_string())? {
            CelValue::Bool(true) => return Ok(status),
            CelValue::Bool(false) => {}
            other => return Err(format!("{name} is {other:?}")),
        }
    }
    Ok("InProgress")
}

/// What the health checks can see: without the plan, and with a digest that does not depend on it.
fn without_plan(fixture: &Fixture) -> Value {
    let mut object = fixture.object();
    let status = object["status"].as_object_mut().unwrap();
    status.retain(|field, _| ["conditions", "observedGeneration", "phase"].contains(&field.as_str()));
    let Some(digest) = &fixture.status.plan_digest else { return object };
    serde_json::from_str(&object.to_string().replace(digest, &"1".repeat(64))).unwrap()
}

/// The test data in the form in which Argo CD's own tests read them.
#[test]
fn the_health_check_for_argo_cd_tells_every_phase() {
    let mut tests = Vec::new();
    for Case { name, fixture, argo_cd: expected, .. } in cases() {
        let object = without_plan(&fixture);
        let path = format!("testdata/{name}.yaml");
        assert_current(&format!("{CHECK}/{path}"), &serde_saphyr::to_string(&object).unwrap());
        let (status, message) = argo_cd(&yaml(&format!("{CHECK}/{path}")));
        assert_eq!(status, expected, "{name}: {message}");
        let ready = |condition: &&Value| condition["type"] == "Ready";
        let ready = object["status"]["conditions"].as_array().unwrap().iter().find(ready).unwrap();
        assert_eq!(ready["message"], message, "{name}");
        tests.push(json!({"healthStatus": {"status": status, "message": message}, "inputPath": path}));
    }
    let tests = serde_saphyr::to_string(&json!({ "tests": tests })).unwrap();
    assert_current(&format!("{CHECK}/health_test.yaml"), &tests);
}

#[test]
fn argo_cd_waits_for_an_object_that_nobody_has_acted_on() {
    let mut edited = Fixture::completed(LOAD_AWARE);
    edited.edit(|_| {});
    let mut fresh = edited.object();
    fresh.as_object_mut().unwrap().remove("status");
    for (object, expected) in [
        (edited.object(), "Waiting for the operator to act on the newest spec"),
        (fresh, "Waiting for the operator"),
        (json!({"metadata": {"generation": 1}, "status": {}}), "Waiting for the operator"),
    ] {
        assert_eq!(argo_cd(&object), ("Progressing".to_owned(), expected.to_owned()));
    }
}

/// The two ways to install the health check hold the same text.
#[test]
fn the_patches_for_argo_cd_hold_the_health_check() {
    let lua = read(&format!("{CHECK}/health.lua"));
    let key = "resource.customizations.health.advisor.kubevirt.io_VirtPlatformConfig";
    let check = json!({"group": "advisor.kubevirt.io", "kind": "VirtPlatformConfig", "check": lua});
    for (path, patch) in [
        ("argocd/argocd-cm.yaml", json!({"data": {key: lua}})),
        ("argocd/openshift-gitops.yaml", json!({"spec": {"resourceHealthChecks": [check]}})),
    ] {
        assert_current(path, &serde_saphyr::to_string(&patch).unwrap());
        assert_eq!(yaml(path), patch, "{path}");
    }
}

#[test]
fn the_health_check_for_flux_tells_every_phase() {
    for Case { name, mut fixture, flux: expected, .. } in cases() {
        assert_eq!(flux(&fixture.object()).as_deref(), Ok(expected), "{name}");
        fixture.edit(|_| {});
        assert_eq!(flux(&fixture.object()).as_deref(), Ok("InProgress"), "{name}, edited");
    }
    let fresh = json!({"metadata": {"generation": 1}, "status": {}});
    assert_eq!(flux(&fresh).as_deref(), Ok("InProgress"), "no conditions yet");
    assert!(flux(&json!({"metadata": {"generation": 1}})).is_err(), "no status yet");
}
