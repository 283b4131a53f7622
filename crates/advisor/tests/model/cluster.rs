//! The API server of the model: the configuration, the targets, the input and the pool, with the preconditions of writes as
//! Kubernetes checks them.

use advisor::{
    Answer, Change, Facts, Intent, Outcome, Plan, Preview, Profile as _, Query,
    kind::MACHINE_CONFIG_POOL,
    world::server_side_apply,
    writing::{Do, Said},
};
use api::{VirtPlatformConfig, names::FIELD_MANAGER, virt_platform_config::Options};
use serde_json::{Value, json};

use crate::{
    hashed::{Hashed, digest},
    profile::{self, Part, ROLE, Toy},
};

#[derive(Debug, Clone, Hash, PartialEq)]
pub(crate) struct Cluster {
    pub(crate) config: Hashed<VirtPlatformConfig>,
    pub(crate) targets: Vec<Target>,
    pub(crate) input: u8,
    /// What the input was before it changed. An old answer may still say so.
    former_input: Option<u8>,
    /// The machine config as the nodes run it.
    rolled_out: Option<Hashed<String>>,
}

#[derive(Debug, Clone, Hash, PartialEq)]
pub(crate) struct Target {
    part: Part,
    now: Version,
    /// What it was before it last changed. An old answer may still say so.
    before: Option<Version>,
}

/// A target at some time. Versions only count up, so that they tell one from another; what they are does not matter.
#[derive(Debug, Clone, Hash, PartialEq)]
struct Version {
    object: Option<Hashed<Value>>,
    uid: u32,
    version: u32,
}

/// What identifies a version of a target is counted from here when nobody remembers an older one. No object has version 1.
const PAST: u32 = 2;
const PRESENT: u32 = 3;

/// What an old answer is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Old {
    Target(usize),
    Input,
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
            let object = (!matches!(part, Part::Chosen | Part::Nodes | Part::Passing)).then(|| match part {
                // Ours from an earlier life, when all profiles shared one name.
                Part::Optional => server_side_apply::apply(None, &part.object("older"), None, FIELD_MANAGER).0,
                part => {
                    let mut object = part.object("of its owner");
                    if *part == Part::Cleared {
                        object["data"]["extra"] = "of its owner".into();
                    }
                    server_side_apply::record(&mut object, "owner", "Update");
                    object
                }
            });
            let now = Version { object: object.map(Hashed::new), uid: PRESENT, version: PRESENT };
            Target { part: *part, now, before: None }
        };
        let targets = toy.parts.iter().map(target).collect();
        Cluster { config: stamped(config), targets, input: 1, former_input: None, rolled_out: None }
    }

    pub(crate) fn facts(&self, toy: &Toy) -> Facts {
        let mut facts = Facts::default();
        for target in &self.targets {
            let answer = match target.shown() {
                Some(object) => Answer::Object { version: "v1", object },
                None => Answer::Absent { version: "v1" },
            };
            facts.insert(Query::Object(target.part.target()), answer);
        }
        let input = json!({"metadata": {"name": "input"}, "spec": {"level": self.input}});
        facts.insert(Query::Object(profile::input()), Answer::Object { version: "v1beta1", object: input });
        let items = if toy.parts.contains(&Part::Nodes) { vec![self.pool(toy)] } else { Vec::new() };
        facts.insert(Query::List(&MACHINE_CONFIG_POOL), Answer::List { version: "v1", items });
        facts
    }

    /// Stands for everything that a profile may want to know.
    pub(crate) fn outlook(&self) -> u64 {
        digest((&self.targets, self.input, self.former_input, &self.rolled_out))
    }

    /// The cluster as an old answer about one target, or about the input, tells it.
    pub(crate) fn as_it_was(&self, old: Old) -> Option<Cluster> {
        let mut cluster = self.clone();
        match old {
            Old::Target(at) => cluster.targets[at].now = self.targets[at].before.clone()?,
            Old::Input => cluster.input = self.former_input?,
        }
        Some(cluster)
    }

    /// No answer will be an old one any more.
    pub(crate) fn forget_past(&mut self) {
        self.former_input = None;
        self.targets.iter_mut().for_each(|target| target.before = None);
    }

    /// Nobody remembers a version of a target: they may as well be these.
    pub(crate) fn count_anew(&mut self) {
        for Target { now, before, .. } in &mut self.targets {
            if let Some(before) = before {
                before.uid = if before.uid == now.uid { PRESENT } else { PAST };
                before.version = PAST;
            }
            (now.uid, now.version) = (PRESENT, PRESENT);
        }
    }

    pub(crate) fn change_input(&mut self, level: u8) {
        self.former_input = Some(self.input);
        self.input = level;
    }

    fn pool(&self, toy: &Toy) -> Value {
        let configuration = |taken_in: Option<&Hashed<String>>| {
            let name = format!("rendered-{}", taken_in.map_or("worker", |it| it.as_str()));
            let source: Vec<Value> = taken_in.iter().map(|_| json!({"name": Part::Nodes.name()})).collect();
            json!({"name": name, "source": source})
        };
        let to_roll_out = self.to_roll_out();
        let rendered = if toy.renders_at_once { &to_roll_out } else { &self.rolled_out };
        let is_updated = if *rendered == self.rolled_out { "Updated" } else { "Updating" };
        json!({
            "metadata": {"name": "worker"},
            "spec": {
                "machineConfigSelector": {"matchLabels": {ROLE: "worker"}},
                "configuration": configuration(rendered.as_ref()),
            },
            "status": {
                "configuration": configuration(self.rolled_out.as_ref()),
                "machineCount": 1, "updatedMachineCount": 1, "readyMachineCount": 1,
                "conditions": [{"type": is_updated, "status": "True"}],
            },
        })
    }

    /// What the pool would take in now.
    fn to_roll_out(&self) -> Option<Hashed<String>> {
        let nodes = self.targets.iter().find(|target| target.part == Part::Nodes)?;
        nodes.now.object.as_ref().map(|object| Hashed::new(Part::Nodes.managed(Some(object))))
    }

    pub(crate) fn is_rolling(&self) -> bool {
        self.to_roll_out() != self.rolled_out
    }

    pub(crate) fn roll_out(&mut self) {
        self.rolled_out = self.to_roll_out();
    }

    /// A plan from these facts, unless a target that has to be previewed has moved since. Others are not asked about.
    pub(crate) fn draw_up(&self, toy: &'static Toy, options: Option<&Options>, facts: Facts) -> Option<Plan> {
        let now = self.facts(toy);
        let draft = toy.resolve(options).unwrap().plan(&facts);
        if draft.intents.iter().any(|intent| facts.object(&intent.target) != now.object(&intent.target)) {
            return None;
        }
        let previews = draft.intents.iter().map(|intent| preview(toy, intent, &facts)).collect();
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

    /// Answers a request of a field manager about the target of an item.
    pub(crate) fn answer(&mut self, at: usize, manager: &str, request: &Do) -> Said {
        let target = &mut self.targets[at];
        let live = target.shown();
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
                    _ => Some(server_side_apply::apply(live.as_ref(), fields, None, manager).0),
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
            Do::End(_) | Do::Later => return Said::Absent,
        };
        target.put(new);
        target.shown().map_or(Said::Absent, |object| Said::Object(Box::new(object)))
    }

    /// Whether it changed anything.
    pub(crate) fn meddle(&mut self, at: usize, meddling: Meddling) -> bool {
        let target = &mut self.targets[at];
        let part = target.part;
        let object = match (meddling, target.object().cloned()) {
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
    pub(crate) fn object(&self) -> Option<&Value> {
        self.now.object.as_deref()
    }

    pub(crate) fn hashed(&self) -> Option<&Hashed<Value>> {
        self.now.object.as_ref()
    }

    /// What it holds of what is managed.
    pub(crate) fn held(&self) -> String {
        self.part.managed(self.object())
    }

    /// The object as the API server answers with it.
    fn shown(&self) -> Option<Value> {
        let mut object = self.object()?.clone();
        object["metadata"]["uid"] = json!(self.now.uid.to_string());
        object["metadata"]["resourceVersion"] = json!(self.now.version.to_string());
        Some(object)
    }

    /// Stores an object, in a new version if it is new.
    fn put(&mut self, object: Option<Value>) -> bool {
        let object = object.map(|mut object| {
            let metadata = object["metadata"].as_object_mut();
            metadata
                .into_iter()
                .for_each(|it| it.retain(|name, _| !["uid", "resourceVersion"].contains(&name.as_str())));
            Hashed::new(object)
        });
        if object == self.now.object {
            return false;
        }
        let is_new = self.now.object.is_none();
        let before = self.now.clone();
        self.now.version += 1;
        self.now.uid = if is_new { self.now.version } else { self.now.uid };
        self.now.object = object;
        self.before = Some(before);
        true
    }
}

fn preview(toy: &Toy, intent: &Intent, facts: &Facts) -> Preview {
    let live = facts.object(&intent.target).cloned();
    match &intent.change {
        Change::Delete => Preview { live, outcome: Outcome::Gone, takes_over: Vec::new() },
        Change::Apply { fields, remove } => {
            let manager = intent.field_manager(toy.about(), live.as_ref());
            let (mut object, takes_over) = server_side_apply::apply(live.as_ref(), fields, None, &manager);
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
    let version = contents(&config);
    config.metadata.managed_fields = None;
    config.metadata.resource_version = Some(version.to_string());
    Hashed::known(config, version)
}

/// Stands for the contents of a configuration. Time stands still, so that only matters which times there are; to print them
/// would take most of the time that there is.
pub(crate) fn contents(config: &VirtPlatformConfig) -> u64 {
    let mut status = config.status.clone();
    let mut times = Vec::new();
    let mut conditions = Vec::new();
    if let Some(status) = &mut status {
        times.push(std::mem::take(&mut status.reverts).len());
        for item in &mut status.items {
            times.push(usize::from(item.last_transition_time.take().is_some()));
            times.push(usize::from(item.waiting_since.take().is_some()));
        }
        conditions = std::mem::take(&mut status.conditions);
    }
    let conditions: Vec<_> =
        conditions.iter().map(|it| (&it.type_, &it.status, &it.reason, &it.message, it.observed_generation)).collect();
    let rest = serde_json::to_vec(&(&config.spec, &status)).unwrap();
    digest((config.metadata.generation, times, conditions, rest))
}
