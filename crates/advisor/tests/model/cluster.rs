//! The cluster of the model: the configuration, the targets, the input and the pool. Its API server checks the preconditions of
//! writes as Kubernetes does.

use advisor::{
    Answer, Change, Facts, Intent, ObjectRef, Plan, Preview, PreviewOutcome, Profile as _, Query,
    kind::{MACHINE_CONFIG, MACHINE_CONFIG_POOL, PLAN_RECORD},
    machine::PlanFailure,
    profile::missing,
    restore,
    test_cluster::server_side_apply,
    writing::{Input, Request},
};
use api::{
    VirtPlatformConfig,
    names::FIELD_MANAGER,
    virt_platform_config::{Profile, VirtPlatformConfigSpec},
    virt_platform_plan_record::{name, number},
};
use serde_json::{Value, json};

use crate::{
    hashed::{Hashed, digest},
    pool,
    profile::{self, Part, ToyProfile},
    records::ModelRecord,
    target::Target,
};

#[derive(Debug, Clone, Hash, PartialEq)]
pub(crate) struct ModelCluster {
    pub(crate) config: Hashed<VirtPlatformConfig>,
    pub(crate) targets: Vec<Target>,
    pub(crate) input: u8,
    /// The input before its last change. A stale read returns it.
    previous_input: Option<u8>,
    /// The machine config as the nodes run it.
    rolled_out: Option<Hashed<String>>,
    /// The record that the status names and, if plans are restored, those before it.
    pub(crate) records: Vec<ModelRecord>,
    /// Whether plans may be restored, so that all records matter with everything that they say.
    pub(crate) keeps_records: bool,
}

/// The value that somebody sets.
pub(crate) const MEDDLED: &str = "meddled";

/// What a stale read is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum StaleRead {
    Target(usize),
    Input,
}

/// An edit of a target by somebody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ForeignEdit {
    /// Changes managed fields.
    Change,
    /// Changes fields that are not managed.
    Touch,
    Delete,
    /// Sets a MachineConfig back to what a plan makes of it.
    SetBack,
}

impl ModelCluster {
    pub(crate) fn new(profile: &ToyProfile, config: VirtPlatformConfig, keeps_records: bool) -> Self {
        let target = |part: &Part| {
            let object = (!matches!(part, Part::Chosen | Part::Nodes | Part::Passing)).then(|| match part {
                // Applied by an earlier version of the operator, when all profiles shared one field manager.
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
            Target::new(*part, object)
        };
        let targets = profile.parts.iter().map(target).collect();
        ModelCluster {
            config: stamped(config),
            targets,
            input: 1,
            previous_input: None,
            rolled_out: None,
            records: Vec::new(),
            keeps_records,
        }
    }

    pub(crate) fn facts(&self, profile: &ToyProfile) -> Facts {
        let mut facts = Facts::default();
        for target in &self.targets {
            let answer = match target.answered() {
                Some(object) => Answer::Object { version: "v1", object },
                None => Answer::Absent { version: "v1" },
            };
            facts.insert(Query::Object(target.part.target()), answer);
        }
        let input = json!({"metadata": {"name": "input"}, "spec": {"level": self.input}});
        facts.insert(Query::Object(profile::input()), Answer::Object { version: "v1beta1", object: input });
        let items = if profile.parts.contains(&Part::Nodes) { vec![self.pool(profile)] } else { Vec::new() };
        for pool in &items {
            let name = pool.pointer("/spec/configuration/name").and_then(Value::as_str).unwrap();
            let query = Query::Object(ObjectRef::cluster(&MACHINE_CONFIG, name));
            let answer = pool::answer(profile, &query);
            facts.insert(query, answer);
        }
        facts.insert(Query::List(&MACHINE_CONFIG_POOL), Answer::List { version: "v1", items });
        if self.keeps_records {
            let items = self.records.iter().filter_map(|record| record.content.as_deref().cloned()).collect();
            facts.insert(Query::List(&PLAN_RECORD), Answer::List { version: "v1alpha1", items });
        }
        facts
    }

    /// A digest of everything that a profile may want to know.
    pub(crate) fn digest_of_facts(&self) -> u64 {
        let records = self.keeps_records.then_some(&self.records);
        digest((&self.targets, self.input, self.previous_input, &self.rolled_out, records))
    }

    /// The cluster with one target, or the input, as it was before its last change.
    pub(crate) fn with_stale_read(&self, read: StaleRead) -> Option<ModelCluster> {
        let mut cluster = self.clone();
        match read {
            StaleRead::Target(at) => cluster.targets[at] = self.targets[at].stale()?,
            StaleRead::Input => cluster.input = self.previous_input?,
        }
        Some(cluster)
    }

    /// There will be no more stale reads.
    pub(crate) fn forget_previous(&mut self) {
        self.previous_input = None;
        self.targets.iter_mut().for_each(Target::forget_previous);
    }

    /// No session remembers versions, so they can be numbered anew. That makes states equal.
    pub(crate) fn renumber_versions(&mut self) {
        self.targets.iter_mut().for_each(Target::renumber_versions);
    }

    pub(crate) fn change_input(&mut self, level: u8) {
        self.previous_input = Some(self.input);
        self.input = level;
    }

    fn pool(&self, profile: &ToyProfile) -> Value {
        let to_roll_out = self.to_roll_out();
        let rendered = if profile.renders_at_once { &to_roll_out } else { &self.rolled_out };
        pool::pool(profile, rendered.as_ref(), self.rolled_out.as_ref())
    }

    /// What the pool would render now.
    fn to_roll_out(&self) -> Option<Hashed<String>> {
        let nodes = self.targets.iter().find(|target| target.part == Part::Nodes)?;
        nodes.object().map(|object| Hashed::new(Part::Nodes.managed(Some(object))))
    }

    pub(crate) fn is_rolling(&self) -> bool {
        self.to_roll_out() != self.rolled_out
    }

    pub(crate) fn roll_out(&mut self) {
        self.rolled_out = self.to_roll_out();
    }

    /// A plan from these facts, or why there is none. None if a target that has to be previewed has changed since.
    pub(crate) fn make_plan(
        &self,
        profile: &'static ToyProfile,
        spec: &VirtPlatformConfigSpec,
        facts: Facts,
    ) -> Option<Result<Plan, PlanFailure>> {
        let now = self.facts(profile);
        let planner = restore::planner(profile, spec).unwrap();
        if let Some(missing) = missing(&planner.requirements(&facts), &facts) {
            return Some(Err(PlanFailure::Missing(missing)));
        }
        let draft = planner.plan(&facts);
        if draft.intents.iter().any(|intent| facts.object(&intent.target) != now.object(&intent.target)) {
            return None;
        }
        let previews = draft.intents.iter().map(|intent| preview(profile, intent, &facts)).collect();
        Some(Ok(Plan::assemble(profile.about(), draft, previews, facts)))
    }

    /// Replaces the status. With `over`, only if the configuration has that version. Whether it was replaced.
    pub(crate) fn update_status(&mut self, new: &VirtPlatformConfig, over: Option<&str>) -> bool {
        if over.is_some_and(|over| self.config.metadata.resource_version.as_deref() != Some(over)) {
            return false;
        }
        let mut config = (*self.config).clone();
        config.status.clone_from(&new.status);
        let named = config.status.as_mut().and_then(|status| status.record.as_mut());
        if let Some(named) = named.filter(|_| !self.keeps_records) {
            // Two names, in turn, are as good as ever new ones, and make states equal.
            let number = number(Profile::Example, &named.name).unwrap();
            named.name = name(Profile::Example, 2 - number % 2);
        }
        self.put_config(stamped(config));
        true
    }

    /// Stores a configuration. Unless plans may be restored, only the record that it names matters from then on.
    pub(crate) fn put_config(&mut self, config: Hashed<VirtPlatformConfig>) {
        let named = config.status.as_ref().and_then(|status| status.record.as_ref());
        let keeps_records = self.keeps_records;
        self.records.retain(|record| keeps_records || named.is_some_and(|named| named.name == record.name));
        self.config = config;
    }

    /// Answers a request of a field manager to a target.
    pub(crate) fn answer(&mut self, at: usize, manager: &str, request: &Request) -> Input {
        let target = &mut self.targets[at];
        let live = target.answered();
        let is_version = |named: &Value| {
            live.as_ref().is_some_and(|live| {
                ["uid", "resourceVersion"]
                    .iter()
                    .all(|part| named.get(part).is_none_or(|named| *named == live["metadata"][part]))
            })
        };
        let new = match request {
            Request::Read => live,
            Request::Apply(fields) => {
                let named = &fields["metadata"];
                let is_creation = named["resourceVersion"] == "1" || named.get("resourceVersion").is_none();
                match &live {
                    None if !is_creation => return Input::Conflict,
                    Some(_) if !is_version(named) => return Input::Conflict,
                    _ => Some(server_side_apply::apply(live.as_ref(), fields, None, manager).0),
                }
            }
            Request::Delete { .. } if live.is_none() => return Input::Absent,
            Request::Delete { preconditions } if !is_version(preconditions) => return Input::Conflict,
            Request::Delete { .. } => {
                target.put(None);
                return Input::Object(Box::default());
            }
            Request::Patch(steps) => {
                let Some(mut live) = live else { return Input::Absent };
                for step in steps.as_array().into_iter().flatten() {
                    let pointer = step["path"].as_str().unwrap();
                    match step["op"].as_str() {
                        Some("test") if live.pointer(pointer) != Some(&step["value"]) => return Input::Conflict,
                        Some("remove") => {
                            let (parent, name) = pointer.rsplit_once('/').unwrap();
                            match live.pointer_mut(parent).unwrap() {
                                Value::Array(entries) => drop(entries.remove(name.parse().unwrap())),
                                object => {
                                    object.as_object_mut().unwrap().remove(name);
                                    server_side_apply::disown(&mut live, pointer);
                                }
                            }
                        }
                        // Only managedFields are replaced, by none.
                        Some("replace") => *live.pointer_mut(pointer).unwrap() = json!([]),
                        _ => {}
                    }
                }
                Some(live)
            }
        };
        target.put(new);
        target.answered().map_or(Input::Absent, |object| Input::Object(Box::new(object)))
    }

    /// Whether the edit changed anything.
    pub(crate) fn edit_target(&mut self, at: usize, edit: ForeignEdit) -> bool {
        let target = &mut self.targets[at];
        let part = target.part;
        let object = match (edit, target.object().cloned()) {
            (ForeignEdit::SetBack, _) if part != Part::Nodes => return false,
            (ForeignEdit::Change | ForeignEdit::SetBack, live) => {
                let mut object = live.unwrap_or_else(|| part.object(""));
                let (pointer, value) = match part {
                    Part::Nodes if edit == ForeignEdit::SetBack => ("/spec/kernelArguments".to_owned(), json!(["a"])),
                    Part::Nodes => ("/spec/kernelArguments".to_owned(), json!([MEDDLED])),
                    part => (format!("/{}/value", part.section()), json!(MEDDLED)),
                };
                *object.pointer_mut(&pointer).unwrap() = value;
                server_side_apply::disown(&mut object, &pointer);
                Some(object)
            }
            (ForeignEdit::Touch, Some(mut live)) => {
                live["status"] = "touched".into();
                Some(live)
            }
            (_, None) => return false,
            (ForeignEdit::Delete, Some(_)) => None,
        };
        target.put(object)
    }
}

fn preview(profile: &ToyProfile, intent: &Intent, facts: &Facts) -> Preview {
    let live = facts.object(&intent.target).cloned();
    match &intent.change {
        Change::Delete => Preview { live, outcome: PreviewOutcome::Gone, takes_over: Vec::new() },
        Change::Apply { fields, remove } => {
            let manager = intent.field_manager(profile.about(), live.as_ref());
            let (mut object, takes_over) = server_side_apply::apply(live.as_ref(), fields, None, &manager);
            for path in remove {
                path.remove(&mut object);
                server_side_apply::disown(&mut object, &path.pointer());
            }
            Preview { live, outcome: PreviewOutcome::Object(object), takes_over }
        }
    }
}

/// The configuration with a version that follows from its contents. No content comes back, because generations only grow and only
/// one session at a time updates the status.
pub(crate) fn stamped(mut config: VirtPlatformConfig) -> Hashed<VirtPlatformConfig> {
    let version = contents(&config);
    config.metadata.managed_fields = None;
    config.metadata.resource_version = Some(version.to_string());
    Hashed::known(config, version)
}

/// A digest of the contents of a configuration. Time stands still, so it only matters which times are set; serializing them would be
/// slow.
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
