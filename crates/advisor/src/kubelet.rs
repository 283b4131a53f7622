//! How the kubelets of a pool handle swap, according to the rendered config of the pool.
//! A kubelet exits if there is swap and `failSwapOn` is not false, and its node is lost. So swap is planned only where the kubelet is
//! known to accept it.

use serde_json::Value;

use crate::{Facts, ObjectRef, Query, kind, object_text::data_url, pools::Pool};

const MAIN_FILE: &str = "/etc/kubernetes/kubelet.conf";
const UNIT: &str = "kubelet.service";

/// The folder of further settings of the kubelet of OpenShift 4.21, if its unit names it.
pub const DROP_INS: &str = "/etc/openshift/kubelet.conf.d";

/// The first release whose kubelets allow swap and read the folder above.
const SINCE: (u64, u64) = (4, 21);

/// What happens to a node with swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SwapSupport {
    Accepted,
    /// Why the node would be lost, or the swap be useless.
    Refused(String),
    /// Why it is not known.
    Unknown(String),
}

/// The version of the cluster. Only queried if the config of a pool is not sufficient.
pub fn cluster_version() -> ObjectRef {
    ObjectRef::cluster(&kind::CLUSTER_VERSION, "version")
}

/// The facts that are needed for these pools, given the facts so far.
pub fn wants(pools: &[Pool<'_>], facts: &Facts) -> Vec<Query> {
    let configs = pools.iter().filter_map(Pool::newest_config);
    let mut queries: Vec<Query> = configs.map(Query::Object).collect();
    let is_known = facts.unanswered(queries.clone()).is_empty();
    if is_known && pools.iter().any(|pool| settings(*pool, facts).is_none()) {
        queries.push(Query::Optional(cluster_version()));
    }
    queries
}

/// How the kubelets of a pool handle swap.
pub fn swap_support(pool: Pool<'_>, facts: &Facts) -> SwapSupport {
    match settings(pool, facts) {
        Some(settings) => settings.swap_support(),
        None => by_version(facts),
    }
}

fn by_version(facts: &Facts) -> SwapSupport {
    let Some(version) = facts.optional(&cluster_version()).and_then(installed) else {
        let nor = match facts.is_denied(&cluster_version()) {
            true => format!("{} may not be read", cluster_version()),
            false => format!("there is no {} that tells", cluster_version()),
        };
        return SwapSupport::Unknown(format!(
            "its rendered config does not tell how its kubelet takes swap, and {nor}"
        ));
    };
    let mut numbers = version.split(['.', '-']).map_while(|part| part.parse::<u64>().ok());
    match numbers.next().zip(numbers.next()) {
        Some(found) if found >= SINCE => SwapSupport::Accepted,
        Some(_) => {
            SwapSupport::Refused(format!("the kubelet of OpenShift {version} does not start on a node with swap"))
        }
        None => SwapSupport::Unknown(format!("nothing can be told from version {version:?} of the cluster")),
    }
}

/// The newest version with a completed update.
fn installed(version: &Value) -> Option<&str> {
    let history = version.pointer("/status/history")?.as_array()?;
    history.iter().find(|entry| entry["state"] == "Completed")?["version"].as_str()
}

/// The settings of a kubelet that concern swap.
#[derive(Debug, Default, PartialEq, Eq)]
struct KubeletSettings {
    fails_on_swap: bool,
    /// Whether pods may use swap at all.
    limited_swap: bool,
    reads_drop_ins: bool,
}

impl KubeletSettings {
    fn swap_support(&self) -> SwapSupport {
        if self.fails_on_swap {
            return SwapSupport::Refused(
                "its kubelet has no 'failSwapOn: false' and does not start on a node with swap".to_owned(),
            );
        }
        if !self.reads_drop_ins && !self.limited_swap {
            return SwapSupport::Refused(format!("its kubelet does not read {DROP_INS}, so no pod could use swap"));
        }
        SwapSupport::Accepted
    }

    fn take_over(&mut self, text: &str) -> Option<()> {
        let settings: Value = serde_saphyr::from_str(text).ok()?;
        if let Some(fails) = settings["failSwapOn"].as_bool() {
            self.fails_on_swap = fails;
        }
        if let Some(behavior) = settings.pointer("/memorySwap/swapBehavior").and_then(Value::as_str) {
            self.limited_swap = behavior == "LimitedSwap";
        }
        Some(())
    }
}

/// The kubelet's settings in the newest config of a pool: its main file, and the files of the folder if the unit names it.
fn settings(pool: Pool<'_>, facts: &Facts) -> Option<KubeletSettings> {
    let config = facts.object(&pool.newest_config()?)?;
    let files: Vec<(&str, &Value)> = list(config, "/spec/config/storage/files", "path");
    let text = |file: &Value| {
        // Compressed payloads are not supported.
        let contents = &file["contents"];
        let is_plain = contents["compression"].as_str().unwrap_or_default().is_empty();
        contents["source"].as_str().filter(|_| is_plain).and_then(data_url)
    };
    let main = files.iter().rfind(|(path, _)| *path == MAIN_FILE)?;
    let mut settings = KubeletSettings { fails_on_swap: true, ..KubeletSettings::default() };
    settings.take_over(&text(main.1)?)?;

    let units = list(config, "/spec/config/systemd/units", "name");
    let (_, unit) = units.iter().rfind(|(name, _)| *name == UNIT)?;
    let more = unit["dropins"].as_array().into_iter().flatten().filter_map(|dropin| dropin["contents"].as_str());
    let mut lines = unit["contents"].as_str().into_iter().chain(more);
    settings.reads_drop_ins = lines.any(reads_drop_ins);
    if settings.reads_drop_ins {
        let mut drop_ins: Vec<_> = files.iter().filter(|(path, _)| is_drop_in(path)).collect();
        drop_ins.sort_by_key(|(path, _)| *path);
        for (_, file) in drop_ins {
            settings.take_over(&text(file)?)?;
        }
    }
    Some(settings)
}

fn list<'a>(config: &'a Value, at: &str, key: &str) -> Vec<(&'a str, &'a Value)> {
    let entries = config.pointer(at).and_then(Value::as_array).into_iter().flatten();
    entries.filter_map(|entry| Some((entry[key].as_str()?, entry))).collect()
}

fn is_drop_in(path: &str) -> bool {
    let name = path.strip_prefix(DROP_INS).and_then(|rest| rest.strip_prefix('/'));
    name.is_some_and(|name| name.ends_with(".conf") && !name.contains('/'))
}

/// Whether a unit starts the kubelet with the folder of further settings.
fn reads_drop_ins(unit: &str) -> bool {
    let values = unit.split("--config-dir").skip(1);
    values.filter_map(|rest| rest.strip_prefix(['=', ' '])).any(|rest| {
        let folder = rest.split(|c: char| c.is_whitespace() || "\"'\\".contains(c)).next().unwrap_or_default();
        folder.trim_end_matches('/') == DROP_INS
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Answer, pools};

    const LABELS: &str = "machineconfiguration.openshift.io/role";

    /// The relevant parts of a rendered config. Units of releases before 4.21 have no `--config-dir`.
    fn rendered(conf: &str, unit: &str) -> Value {
        let encoded: String = conf.bytes().map(|byte| format!("%{byte:02X}")).collect();
        json!({"metadata": {"name": "rendered-worker"}, "spec": {"config": {
            "storage": {"files": [
                {"path": "/etc/other", "contents": {"source": "data:,x"}},
                {"path": MAIN_FILE, "contents": {"source": format!("data:,{encoded}")}},
            ]},
            "systemd": {"units": [{"name": UNIT, "contents": unit}]},
        }}})
    }

    const OLD_UNIT: &str = "[Service]\nExecStart=/usr/local/bin/kubenswrapper \\\n    /usr/bin/kubelet \\\n      \
                            --config=/etc/kubernetes/kubelet.conf \\\n      --v=2\n";
    const NEW_UNIT: &str = "[Service]\nExecStart=/usr/local/bin/kubenswrapper \\\n    /usr/bin/kubelet \\\n      \
                            --config=/etc/kubernetes/kubelet.conf \\\n      --config-dir=/etc/openshift/kubelet.conf.d \\\n      --v=2\n";
    const OLD_CONF: &str = "kind: KubeletConfiguration\nmaxPods: 250\n";
    const NEW_CONF: &str = "kind: KubeletConfiguration\nfailSwapOn: false\nmaxPods: 250\n";

    fn support(rendered: Option<Value>, version: Option<Value>) -> SwapSupport {
        let pool = json!({
            "metadata": {"name": "worker"},
            "spec": {"machineConfigSelector": {"matchLabels": {LABELS: "worker"}}, "configuration": {"name": "rendered-worker"}},
        });
        let list = (pools::all(), Answer::List { version: "v1", items: vec![pool] });
        let config = ObjectRef::cluster(&kind::MACHINE_CONFIG, "rendered-worker");
        let answer = |object: Option<Value>| {
            object.map_or(Answer::Absent { version: "v1" }, |object| Answer::Object { version: "v1", object })
        };
        let facts = Facts::of([
            list,
            (Query::Object(config), answer(rendered)),
            (Query::Optional(cluster_version()), answer(version)),
        ]);
        let reached = pools::reached(&facts, &json!({LABELS: "worker"}));
        swap_support(reached[0], &facts)
    }

    fn version(history: &[(&str, &str)]) -> Option<Value> {
        let entry = |(state, version): &(&str, &str)| json!({"state": state, "version": version});
        Some(json!({"status": {"history": history.iter().map(entry).collect::<Vec<_>>()}}))
    }

    /// Real operators, first in rank: on 4.20 and older a node with swap does not come back.
    #[test]
    fn the_rendered_config_tells_whether_a_kubelet_survives_swap() {
        let refused =
            |part: &str, support: SwapSupport| matches!(support, SwapSupport::Refused(why) if why.contains(part));
        assert_eq!(support(Some(rendered(NEW_CONF, NEW_UNIT)), None), SwapSupport::Accepted, "4.21");
        assert!(refused("failSwapOn", support(Some(rendered(OLD_CONF, OLD_UNIT)), None)), "4.20");
        assert!(refused("failSwapOn", support(Some(rendered(OLD_CONF, NEW_UNIT)), None)), "only half of it");
        assert!(refused("does not read", support(Some(rendered(NEW_CONF, OLD_UNIT)), None)), "the other half");
        let by_kubelet_config = "{\"failSwapOn\": false, \"memorySwap\": {\"swapBehavior\": \"LimitedSwap\"}}";
        assert_eq!(
            support(Some(rendered(by_kubelet_config, OLD_UNIT)), None),
            SwapSupport::Accepted,
            "a KubeletConfig"
        );
        let forbidden = "failSwapOn: true\n";
        let newest = version(&[("Completed", "4.22.1")]);
        assert!(refused("failSwapOn", support(Some(rendered(forbidden, NEW_UNIT)), newest)), "whatever the version");
    }

    #[test]
    fn files_beside_the_main_one_count_if_they_are_read() {
        let with = |unit: &str, name: &str, conf: &str| {
            let mut config = rendered(NEW_CONF, unit);
            let file = json!({"path": format!("{DROP_INS}/{name}"), "contents": {"source": format!("data:,{conf}")}});
            config["spec"]["config"]["storage"]["files"].as_array_mut().unwrap().push(file);
            support(Some(config), None)
        };
        assert!(matches!(with(NEW_UNIT, "10-x.conf", "failSwapOn: true"), SwapSupport::Refused(_)));
        assert_eq!(with(NEW_UNIT, "10-x.txt", "failSwapOn: true"), SwapSupport::Accepted, "not a .conf");
        assert!(
            matches!(with(OLD_UNIT, "10-x.conf", "failSwapOn: true"), SwapSupport::Refused(why) if why.contains("read"))
        );
        let mut dropped = rendered(NEW_CONF, OLD_UNIT);
        dropped["spec"]["config"]["systemd"]["units"][0]["dropins"] = json!([{"name": "20-x.conf", "contents": "[Service]\nEnvironment=\"X=--config-dir /etc/openshift/kubelet.conf.d/\"\n"}]);
        assert_eq!(support(Some(dropped), None), SwapSupport::Accepted, "a drop-in of the unit");
    }

    #[test]
    fn without_a_config_that_can_be_read_the_version_tells() {
        let unreadable = [None, Some(json!({"spec": {}})), Some(rendered(": not yaml: [", NEW_UNIT)), {
            let mut config = rendered(NEW_CONF, NEW_UNIT);
            config["spec"]["config"]["storage"]["files"][1]["contents"]["compression"] = "gzip".into();
            Some(config)
        }];
        for config in unreadable {
            for (history, is_accepted) in [
                (&[("Completed", "4.21.0")][..], true),
                (&[("Completed", "4.22.0-0.nightly-2026-01-01-000000")], true),
                (&[("Completed", "5.0.3")], true),
                (&[("Completed", "4.20.9")], false),
                (&[("Partial", "4.21.0"), ("Completed", "4.20.9")], false),
            ] {
                let support = support(config.clone(), version(history));
                assert_eq!(support == SwapSupport::Accepted, is_accepted, "{history:?}");
                assert!(!matches!(support, SwapSupport::Unknown(_)), "{history:?}");
            }
            for version in [None, version(&[]), version(&[("Completed", "next")]), Some(json!({}))] {
                assert!(matches!(support(config.clone(), version), SwapSupport::Unknown(_)));
            }
        }
    }
}
