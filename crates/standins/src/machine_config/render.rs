//! Rendering: merges the MachineConfigs that a pool selects into the one that its nodes run.

use advisor::{
    Facts, fingerprint,
    machine_config::{self, Disruption},
};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{
    Configuration, MachineConfig, MachineConfigPool, RenderError, Source, ignition, membership::Selection, names,
    validation,
};

/// The version of every rendered Ignition config.
const IGNITION_VERSION: &str = "3.5.0";
const HASH_LENGTH: usize = 32;

/// The config that the nodes of a pool should run.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    pub name: String,
    pub spec: Value,
    /// The sorted names of the configs that it was rendered from.
    pub sources: Vec<String>,
}

impl Rendered {
    pub fn configuration(&self) -> Configuration {
        let source = self.sources.iter().map(|name| Source::machine_config(name)).collect();
        Configuration { name: self.name.clone(), source }
    }
}

/// Renders the configs that `pool` selects among `configs`. The name depends only on the content, and an existing one of the pool with
/// this content is taken, whoever made it: a new name would update every node.
pub fn render<'a, I>(pool: &MachineConfigPool, configs: I) -> Result<Rendered, RenderError>
where
    I: IntoIterator<Item = &'a MachineConfig> + Clone,
{
    let pool_name = pool.name_any();
    let selector = pool.spec.machine_config_selector.as_ref();
    let selection = Selection::of(selector);
    let is_selected = |config: &&MachineConfig| !is_rendered(&config.name_any()) && selection.has(config.labels());
    let mut selected: Vec<&MachineConfig> = configs.clone().into_iter().filter(is_selected).collect();
    if selected.is_empty() {
        return Err(RenderError::NothingSelected(json!(selector).to_string()));
    }
    selected.iter().try_for_each(|config| validation::check(config))?;
    // Configs for all workers come first, so that those for a custom pool win.
    selected.sort_by_key(|config| {
        (config.labels().get(names::ROLE).is_none_or(|role| role != "worker"), config.name_any())
    });
    let spec = merge(&selected);
    validation::check_size(&spec)?;

    let mut sources: Vec<String> = selected.iter().map(|config| config.name_any()).collect();
    sources.sort();
    let name = name(&pool_name, &pool.spec.configuration.name, &spec, configs);
    Ok(Rendered { name, spec, sources })
}

/// Whether a name is that of a rendered config, which no pool takes as a source.
fn is_rendered(name: &str) -> bool {
    name.starts_with("rendered-")
}

/// Whether a name is that of a rendered config of this pool.
pub(super) fn is_rendered_for(name: &str, pool: &str) -> bool {
    let hash = name.strip_prefix("rendered-").and_then(|rest| rest.strip_prefix(pool)?.strip_prefix('-'));
    hash.is_some_and(|hash| hash.len() == HASH_LENGTH && hash.chars().all(|digit| digit.is_ascii_hexdigit()))
}

fn merge(configs: &[&MachineConfig]) -> Value {
    let fields = |name: &'static str| configs.iter().filter_map(move |config| config.data.get("spec")?.get(name));
    // Lists are concatenated: order and repetitions are part of the content.
    let lists = |name| fields(name).filter_map(Value::as_array).flatten().cloned().collect::<Vec<Value>>();
    let last = |name, default: &str| {
        let given = |text: &&str| !text.is_empty() && *text != default;
        fields(name).filter_map(Value::as_str).rfind(given).map(str::to_owned)
    };
    let mut config = json!({});
    fields("config").for_each(|later| ignition::merge(&mut config, later));
    config["ignition"]["version"] = IGNITION_VERSION.into();

    let mut spec = json!({
        "config": config,
        "extensions": lists("extensions"),
        "fips": fields("fips").any(|fips| *fips == true),
        "kernelArguments": lists("kernelArguments"),
        "kernelType": last("kernelType", "default").unwrap_or_else(|| "default".to_owned()),
    });
    for field in ["baseOSExtensionsContainerImage", "osImageURL"] {
        if let Some(image) = last(field, "") {
            spec[field] = image.into();
        }
    }
    spec
}

fn name<'a>(pool: &str, current: &str, spec: &Value, configs: impl IntoIterator<Item = &'a MachineConfig>) -> String {
    let hash: String = fingerprint::sha256(spec).chars().take(HASH_LENGTH).collect();
    let name = format!("rendered-{pool}-{hash}");
    let rendered = json!({"spec": spec});
    let is_same = |config: &&MachineConfig| {
        is_rendered_for(&config.name_any(), pool)
            && machine_config::disruption(Some(&config.data), Some(&rendered), &Facts::default())
                == Disruption::Unchanged
    };
    let stored = configs.into_iter().filter(is_same).map(ResourceExt::name_any);
    // Among several names for the same content, the one in use is first, then our own.
    stored.min_by_key(|stored| (stored != current, *stored != name, stored.clone())).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_config::test_objects::{machine_config, pool, sample};

    fn arguments(name: &str, role: &str, arguments: &[&str]) -> MachineConfig {
        machine_config(name, role, json!({"kernelArguments": arguments}))
    }

    fn merged(configs: &[MachineConfig]) -> Rendered {
        render(&pool("infra", &["worker", "infra"]), configs).unwrap()
    }

    #[test]
    fn worker_configs_come_first_then_the_others_each_by_name() {
        let rendered = merged(&[
            arguments("10-infra", "infra", &["c"]),
            arguments("99-worker", "worker", &["b"]),
            arguments("05-infra", "infra", &["d"]),
            arguments("00-worker", "worker", &["a"]),
            arguments("00-master", "master", &["no"]),
        ]);
        assert_eq!(rendered.spec["kernelArguments"], json!(["a", "b", "d", "c"]));
        assert_eq!(rendered.sources, ["00-worker", "05-infra", "10-infra", "99-worker"]);
    }

    #[test]
    fn kernel_arguments_are_concatenated_with_their_repetitions() {
        let rendered =
            merged(&[arguments("00", "worker", &["psi=0", "quiet"]), arguments("99", "worker", &["psi=1", "quiet"])]);
        assert_eq!(rendered.spec["kernelArguments"], json!(["psi=0", "quiet", "psi=1", "quiet"]));
    }

    #[test]
    fn each_field_has_its_own_rule() {
        let file = |text: &str| json!({"ignition": {"version": "3.2.0"}, "storage": {"files": [{"path": "/a", "contents": {"source": text}}]}});
        let rendered = merged(&[
            machine_config(
                "00",
                "worker",
                json!({"config": file("one"), "osImageURL": "os:1", "kernelType": "realtime", "fips": true, "extensions": ["ipsec"]}),
            ),
            machine_config(
                "50",
                "worker",
                json!({"config": file("two"), "osImageURL": "os:2", "kernelType": "default", "fips": false, "extensions": ["ipsec"]}),
            ),
            machine_config("99", "worker", json!({"osImageURL": "", "kernelArguments": null})),
        ]);
        assert_eq!(
            rendered.spec,
            json!({
                "config": {
                    "ignition": {"version": "3.5.0"},
                    "storage": {"files": [{"path": "/a", "contents": {"source": "two"}}]},
                },
                "extensions": ["ipsec", "ipsec"],
                "fips": true,
                "kernelArguments": [],
                "kernelType": "realtime",
                "osImageURL": "os:2",
            })
        );
    }

    #[test]
    fn the_name_follows_the_content_and_nothing_else() {
        let name = |configs: &[MachineConfig]| merged(configs).name;
        let base = [arguments("00", "worker", &["a"]), arguments("10", "worker", &["b"])];
        let first = name(&base);
        assert!(is_rendered_for(&first, "infra"), "{first}");
        assert_eq!(name(&[base[1].clone(), base[0].clone()]), first, "the order of the list does not matter");
        assert_eq!(name(&[arguments("05", "worker", &["a", "b"])]), first, "neither do the names of the sources");
        let mut labeled = base.clone();
        labeled[0].labels_mut().insert("x".into(), "y".into());
        assert_eq!(name(&labeled), first, "nor labels");
        assert_ne!(name(&base[..1]), first);
        assert_ne!(name(&[arguments("00", "worker", &["b", "a"])]), first, "reordered arguments are other content");
        assert_ne!(name(&[arguments("00", "worker", &["a", "b", "b"])]), first, "and so are repeated ones");
    }

    #[test]
    fn the_name_of_a_stored_config_with_the_same_content_is_taken() {
        let base = arguments("00", "worker", &["a"]);
        let other = |digit: &str, arguments: &[&str]| {
            let mut config = machine_config(&format!("rendered-infra-{}", digit.repeat(32)), "", json!(null));
            config.data = json!({"spec": {"config": {"ignition": {"version": "3.5.0"}}, "kernelArguments": arguments, "kernelType": "default"}});
            config
        };
        let own = merged(std::slice::from_ref(&base)).name;
        let (a, b, different) = (other("a", &["a"]), other("b", &["a"]), other("0", &["x"]));
        let (name_a, name_b) = (a.name_any(), b.name_any());
        let mut stored = vec![base.clone(), different, b, a];
        assert_eq!(merged(&stored).name, name_a);
        let mut pool = pool("infra", &["worker"]);
        pool.spec.configuration.name = name_b.clone();
        assert_eq!(render(&pool, &stored).unwrap().name, name_b, "the one in use is preferred");
        stored.push(machine_config(&own, "", merged(&[base]).spec));
        pool.spec.configuration.name.clear();
        assert_eq!(render(&pool, &stored).unwrap().name, own, "then our own");
    }

    #[test]
    fn the_sample_cluster_keeps_the_names_it_has() {
        let (configs, pools) = sample();
        for pool in &pools {
            let rendered = render(pool, &configs).unwrap();
            assert_eq!(rendered.configuration(), pool.spec.configuration, "{}", pool.name_any());
        }
        assert_eq!(pools.len(), 2);
    }

    #[test]
    fn a_pool_that_selects_nothing_or_an_invalid_config_is_not_rendered() {
        let error = render(&pool("empty", &["none"]), &[arguments("00", "worker", &[])]).unwrap_err();
        assert_eq!(error.reason(), "NothingSelected");
        let mut everything = pool("x", &[]);
        everything.spec.machine_config_selector = None;
        assert_eq!(render(&everything, &[arguments("00", "worker", &[])]).unwrap_err().reason(), "NothingSelected");
        let bad = machine_config("50-bad", "worker", json!({"extensions": ["games"]}));
        let error = render(&pool("worker", &["worker"]), &[arguments("00", "worker", &[]), bad]).unwrap_err();
        assert_eq!(error.to_string(), "MachineConfig 50-bad wants extension \"games\", which does not exist");
    }

    #[test]
    fn rendered_configs_are_known_by_pool_and_hash() {
        let hash = "0123456789abcdef0123456789abcdef";
        for (name, pool, expected) in [
            (format!("rendered-worker-{hash}"), "worker", true),
            (format!("rendered-worker-gpu-{hash}"), "worker", false),
            (format!("rendered-worker-gpu-{hash}"), "worker-gpu", true),
            ("rendered-worker-0123".to_owned(), "worker", false),
            (format!("99-worker-{hash}"), "worker", false),
        ] {
            assert_eq!(is_rendered_for(&name, pool), expected, "{name} of {pool}");
        }
    }
}
