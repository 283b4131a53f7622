//! The API server of the model: the configuration, the targets, the input and the pool, with the preconditions of writes as
//! Kubernetes checks them.

use advisor::{
    Answer, Change, Facts, Intent, Outcome, Plan, Preview, Profile as _, Query,
    kind::MACHINE_CONFIG_POOL,
    writing::{Do, Said},
};
use api::{VirtPlatformConfig, virt_platform_config::Options};
use serde_json::{Value, json};

use crate::{
    hashed::{Hashed, digest},
    profile::{self, Part, ROLE, Toy},
    server_side_apply,
};

#[derive(Debug, Clone, Hash, PartialEq)]
pub(crate) struct Cluster {
    pub(crate) config: Hashed<VirtPlatformConfig>,
    pub(crate) targets: Vec<Target>,
    pub(crate) input: u8,
    /// The machine config as the nodes run it.
    pub(crate) rolled_out: Option<String>,
}

#[derive(Debug, Clone, Hash, PartialEq)]
pub(crate) struct Target {
    pub(crate) object: Option<Hashed<Value>>,
    /// How often it was written. Goes on when the object is created anew.
    version: u32,
}

/// What others do to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Meddling {
    /// Sets what we manage to something else.
    Change,
    /// Writes something that is none of our business.
    Touch,
    Delete,
}

impl Cluster {
    pub(crate) fn new(toy: &Toy, config: VirtPlatformConfig) -> Self {
        let target = |part: &Part| {
            let mut target = Target { object: None, version: 1 };
            if !matches!(part, Part::Chosen | Part::Nodes) {
                let mut object = part.object("of its owner");
                if *part == Part::Cleared {
                    object["data"]["extra"] = "of its owner".into();
                }
                if *part == Part::Optional {
                    // Ours from an earlier life.
                    object = server_side_apply::apply(None, &part.object("older"), None).0;
                } else {
                    server_side_apply::record(&mut object, "owner", "Update");
                }
                target.put(Some(object));
            }
            target
        };
        let targets = toy.parts.iter().map(target).collect();
        Cluster { config: stamped(config), targets, input: 1, rolled_out: None }
    }

    pub(crate) fn facts(&self, toy: &Toy) -> Facts {
        let mut facts = Facts::default();
        for (part, target) in toy.parts.iter().zip(&self.targets) {
            let answer = match &target.object {
                Some(object) => Answer::Object { version: "v1", object: (**object).clone() },
                None => Answer::Absent { version: "v1" },
            };
            facts.insert(Query::Object(part.target()), answer);
        }
        let input = json!({"metadata": {"name": "input"}, "spec": {"level": self.input}});
        facts.insert(Query::Object(profile::input()), Answer::Object { version: "v1beta1", object: input });
        let items = if toy.parts.contains(&Part::Nodes) { vec![self.pool(toy)] } else { Vec::new() };
        facts.insert(Query::List(&MACHINE_CONFIG_POOL), Answer::List { version: "v1", items });
        facts
    }

    /// Stands for everything that a profile may want to know.
    pub(crate) fn outlook(&self) -> u64 {
        digest((&self.targets, self.input, &self.rolled_out))
    }

    fn pool(&self, toy: &Toy) -> Value {
        let configuration = |taken_in: Option<String>| {
            let name = format!("rendered-{}", taken_in.as_deref().unwrap_or("worker"));
            let source: Vec<Value> = taken_in.iter().map(|_| json!({"name": Part::Nodes.name()})).collect();
            json!({"name": name, "source": source})
        };
        let rendered = if toy.renders_at_once { self.to_roll_out(toy) } else { self.rolled_out.clone() };
        let is_updated = if rendered == self.rolled_out { "Updated" } else { "Updating" };
        json!({
            "metadata": {"name": "worker"},
            "spec": {
                "machineConfigSelector": {"matchLabels": {ROLE: "worker"}},
                "configuration": configuration(rendered),
            },
            "status": {
                "configuration": configuration(self.rolled_out.clone()),
                "machineCount": 1, "updatedMachineCount": 1, "readyMachineCount": 1,
                "conditions": [{"type": is_updated, "status": "True"}],
            },
        })
    }

    /// What the pool would take in now.
    fn to_roll_out(&self, toy: &Toy) -> Option<String> {
        let at = toy.parts.iter().position(|part| *part == Part::Nodes)?;
        Some(Part::Nodes.managed(Some(self.targets[at].object.as_deref()?)))
    }

    pub(crate) fn is_rolling(&self, toy: &Toy) -> bool {
        self.to_roll_out(toy) != self.rolled_out
    }

    pub(crate) fn roll_out(&mut self, toy: &Toy) {
        self.rolled_out = self.to_roll_out(toy);
    }

    /// A plan from these facts, unless a target has moved since.
    pub(crate) fn draw_up(&self, toy: &'static Toy, options: Option<&Options>, facts: Facts) -> Option<Plan> {
        let now = self.facts(toy);
        let is_current = |part: &Part| facts.object(&part.target()) == now.object(&part.target());
        if !toy.parts.iter().all(is_current) {
            return None;
        }
        let draft = toy.resolve(options).unwrap().plan(&facts);
        let previews = draft.intents.iter().map(|intent| preview(intent, &facts)).collect();
        Some(Plan::assemble(toy.about(), draft, previews, facts))
    }

    /// Replaces the status. With `over`, only if the configuration is that version.
    pub(crate) fn record(&mut self, new: &VirtPlatformConfig, over: Option<&str>) -> bool {
        if over.is_some_and(|over| self.config.metadata.resource_version.as_deref() != Some(over)) {
            return false;
        }
        let mut config = (*self.config).clone();
        config.status.clone_from(&new.status);
        self.config = stamped(config);
        true
    }

    /// Answers a request about the target of an item.
    pub(crate) fn answer(&mut self, at: usize, request: &Do) -> Said {
        let target = &mut self.targets[at];
        let live = target.object.as_deref().cloned();
        let is_version = |named: &Value| {
            live.as_ref().is_some_and(|live| {
                ["uid", "resourceVersion"]
                    .iter()
                    .all(|part| named.get(part).is_none_or(|named| *named == live["metadata"][part]))
            })
        };
        let new = match request {
            Do::Read => live,
            Do::Apply(fields) => {
                let named = &fields["metadata"];
                let is_creation = named["resourceVersion"] == "1" || named.get("resourceVersion").is_none();
                match &live {
                    None if !is_creation => return Said::Conflict,
                    Some(_) if !is_version(named) => return Said::Conflict,
                    _ => Some(server_side_apply::apply(live.as_ref(), fields, None).0),
                }
            }
            Do::Delete { .. } if live.is_none() => return Said::Absent,
            Do::Delete { preconditions } if !is_version(preconditions) => return Said::Conflict,
            Do::Delete { .. } => {
                target.put(None);
                return Said::Object(Box::default());
            }
            Do::Patch(steps) => {
                let Some(mut live) = live else { return Said::Absent };
                for step in steps.as_array().into_iter().flatten() {
                    let pointer = step["path"].as_str().unwrap();
                    match step["op"].as_str() {
                        Some("test") if live.pointer(pointer) != Some(&step["value"]) => return Said::Conflict,
                        Some("remove") => {
                            let (parent, name) = pointer.rsplit_once('/').unwrap();
                            live.pointer_mut(parent).and_then(Value::as_object_mut).unwrap().remove(name);
                            server_side_apply::disown(&mut live, pointer);
                        }
                        _ => {}
                    }
                }
                Some(live)
            }
            Do::End(_) | Do::Later => None,
        };
        target.put(new);
        target.object.as_deref().map_or(Said::Absent, |object| Said::Object(Box::new(object.clone())))
    }

    /// Whether it changed anything.
    pub(crate) fn meddle(&mut self, part: Part, at: usize, meddling: Meddling) -> bool {
        let target = &mut self.targets[at];
        let object = match (meddling, target.object.as_deref().cloned()) {
            (Meddling::Change, live) => {
                let mut object = live.unwrap_or_else(|| part.object(""));
                let (pointer, value) = match part {
                    Part::Nodes => ("/spec/kernelArguments".to_owned(), json!(["meddled"])),
                    part => (format!("/{}/value", part.section()), json!("meddled")),
                };
                *object.pointer_mut(&pointer).unwrap() = value;
                server_side_apply::disown(&mut object, &pointer);
                Some(object)
            }
            (Meddling::Touch, Some(mut live)) => {
                live["status"] = "touched".into();
                Some(live)
            }
            (_, None) => return false,
            (Meddling::Delete, Some(_)) => None,
        };
        target.put(object)
    }
}

impl Target {
    /// Stores an object, in a new version if it is new.
    fn put(&mut self, object: Option<Value>) -> bool {
        let old = self.object.as_deref();
        let Some(mut object) = object else {
            self.version += u32::from(old.is_some());
            return self.object.take().is_some();
        };
        let identity = |version: u32| json!(version.to_string());
        if let Some(old) = old {
            object["metadata"]["uid"] = old["metadata"]["uid"].clone();
            object["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
            if object == *old {
                return false;
            }
        } else {
            object["metadata"]["uid"] = identity(self.version);
        }
        self.version += 1;
        object["metadata"]["resourceVersion"] = identity(self.version);
        self.object = Some(Hashed::new(object));
        true
    }
}

fn preview(intent: &Intent, facts: &Facts) -> Preview {
    let live = facts.object(&intent.target).cloned();
    match &intent.change {
        Change::Delete => Preview { live, outcome: Outcome::Gone, takes_over: Vec::new() },
        Change::Apply { fields, remove } => {
            let (mut object, takes_over) = server_side_apply::apply(live.as_ref(), fields, None);
            for path in remove {
                path.remove(&mut object);
                server_side_apply::disown(&mut object, &path.pointer());
            }
            Preview { live, outcome: Outcome::Object(object), takes_over }
        }
    }
}

/// The configuration with a version that tells its contents from all others: as generations only grow and one session at a
/// time records, none comes back.
pub(crate) fn stamped(mut config: VirtPlatformConfig) -> Hashed<VirtPlatformConfig> {
    config.metadata.resource_version = None;
    config.metadata.managed_fields = None;
    let version = digest(serde_json::to_vec(&config).unwrap());
    config.metadata.resource_version = Some(version.to_string());
    Hashed::new(config)
}
