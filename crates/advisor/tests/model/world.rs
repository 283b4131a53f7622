//! The model as the checker explores it: everything that can happen next, within the bounds of a scenario.

use std::{fmt, sync::Arc};

use api::VirtPlatformConfig;
use api::virt_platform_config::{Action, Approval, FailurePolicy, Phase, Profile, VirtPlatformConfigSpec};
use stateright::{Model, Property};

use advisor::{session::Ask, writing::Do};

use crate::{
    cluster::{Cluster, Meddling, Old, stamped},
    history::{Broken, History},
    memory::Memory,
    operator::{Core, Fate, Stage, Touches, is_effect, is_write},
    profile::{Part, Toy, other_options},
    rules::{self, RULES},
};

/// More steps in a row without anything to choose are a circle.
const ENOUGH: usize = 300;

/// How often something may happen.
#[derive(Debug, Clone, Copy, Hash, PartialEq, Eq, Default)]
pub(crate) struct Bounds {
    pub(crate) edits: u8,
    pub(crate) meddlings: u8,
    /// Changes of the input; the last one may be that it comes back.
    pub(crate) inputs: u8,
    pub(crate) unheard: u8,
    pub(crate) crashes: u8,
    pub(crate) refusals: u8,
    /// Reads that are answered with what was so before the last change.
    pub(crate) stale: u8,
}

/// What the administrator does to the spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Edit {
    DryRun,
    Apply,
    /// Apply, and only the plan that is in the status.
    ApplyNamed,
    /// Apply, and only some other plan.
    ApplyOther,
    Ignore,
    Options,
    Bypass,
    Policy,
}

/// Where it begins: with this spec, before the operator has seen it or after it has come to rest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    pub(crate) action: Action,
    pub(crate) bypass: bool,
    pub(crate) policy: FailurePolicy,
    pub(crate) is_settled: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) toy: &'static Toy,
    pub(crate) starts: Vec<Start>,
    pub(crate) bounds: Bounds,
    pub(crate) edits: &'static [Edit],
    pub(crate) meddlings: &'static [Meddling],
}

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) scenario: Scenario,
    pub(crate) memory: Arc<Memory>,
    /// Words of the rules that count, if not all do.
    pub(crate) words: Option<&'static [&'static str]>,
}

#[derive(Clone, Hash, PartialEq)]
pub(crate) struct State {
    pub(crate) core: Core,
    left: Bounds,
    pub(crate) history: History,
    pub(crate) broken: Option<Broken>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    Begin {
        is_stale: bool,
    },
    Step(Fate),
    /// A step that changes something, and the end of the process before it hears of it.
    StepAndCrash {
        is_forgetful: bool,
    },
    RollOut,
    Edit(Edit),
    Meddle(usize, Meddling),
    Input(u8),
}

impl World {
    pub(crate) fn new(scenario: Scenario, mutation: Option<crate::mutation::Mutation>) -> Self {
        let stage = Stage { toy: scenario.toy, mutation };
        World { scenario, memory: Arc::new(Memory::new(stage)), words: None }
    }

    fn start(&self, start: &Start) -> State {
        let mut spec = VirtPlatformConfigSpec::new(Profile::Example);
        spec.action = start.action;
        spec.bypass_optimistic_lock = start.bypass;
        spec.failure_policy = start.policy;
        let mut config = VirtPlatformConfig::new(Profile::Example.as_str(), spec);
        config.metadata.uid = Some("config".into());
        config.metadata.generation = Some(1);
        let cluster = Cluster::new(self.scenario.toy, config);
        let known = cluster.config.clone();
        let mut state = State {
            core: Core { cluster, run: None, known, began: None, has_news: true, is_alone: false, kept: None },
            left: Bounds::default(),
            history: History::default(),
            broken: None,
        };
        for _ in 0..if start.is_settled { ENOUGH } else { 0 } {
            if state.core.cluster.is_rolling() {
                state.core.cluster.roll_out();
                state.core.has_news = true;
            }
            if state.core.run.is_none() && !state.core.has_news {
                break;
            }
            self.go_on(&mut state);
        }
        state.left = self.scenario.bounds;
        self.tidy(&mut state);
        state
    }

    fn edit(&self, config: &VirtPlatformConfig, edit: Edit) -> Option<VirtPlatformConfig> {
        let mut new = config.clone();
        let spec = &mut new.spec;
        let named = |digest: &str| Some(Approval { plan_digest: Some(digest.to_owned()), reason: None });
        match edit {
            Edit::DryRun => spec.action = Action::DryRun,
            Edit::Ignore => spec.action = Action::Ignore,
            Edit::Apply => {
                spec.action = Action::Apply;
                spec.approval = None;
            }
            Edit::ApplyNamed => {
                spec.action = Action::Apply;
                spec.approval = named(config.status.as_ref()?.plan_digest.as_ref()?);
            }
            Edit::ApplyOther => {
                spec.action = Action::Apply;
                spec.approval = named(&"0".repeat(64));
            }
            Edit::Options => spec.options = if spec.options.is_some() { None } else { other_options() },
            Edit::Bypass => spec.bypass_optimistic_lock = !spec.bypass_optimistic_lock,
            Edit::Policy => {
                let is_abort = spec.failure_policy == FailurePolicy::Abort;
                spec.failure_policy = if is_abort { FailurePolicy::Continue } else { FailurePolicy::Abort };
            }
        }
        new.metadata.generation = new.metadata.generation.map(|generation| generation + 1);
        (new.spec != config.spec).then_some(new)
    }
}

/// What of that which others do, or the nodes, makes a difference to the next request.
struct Matters {
    edits: bool,
    targets: Touches,
    input: bool,
    rollout: bool,
}

impl Matters {
    fn target(&self, at: usize) -> bool {
        match self.targets {
            Touches::Everything | Touches::Targets => true,
            Touches::Target(touched) => touched == at,
            Touches::Config | Touches::Nothing => false,
        }
    }
}

fn is_read(ask: &Ask) -> bool {
    matches!(ask, Ask::Look | Ask::DrawUp { seen: None } | Ask::Write(Do::Read))
}

impl World {
    fn matters(&self, State { core, left, .. }: &State) -> Matters {
        let touches = core.run.as_ref().map_or(Touches::Everything, |run| self.memory.stage.touches(run));
        let is_node = |at: usize| self.scenario.toy.parts[at] == Part::Nodes;
        let sees_pool = match touches {
            Touches::Everything => true,
            Touches::Target(at) => is_node(at),
            Touches::Nothing | Touches::Config | Touches::Targets => false,
        };
        // What is written must be approved, so an approval makes a difference to a write.
        let sees_config = core.ask().is_none_or(|ask| touches == Touches::Config || is_write(ask));
        Matters {
            edits: left.edits > 0 && sees_config,
            targets: if left.meddlings > 0 { touches } else { Touches::Nothing },
            input: left.inputs > 0 && touches == Touches::Everything,
            rollout: sees_pool && core.cluster.is_rolling(),
        }
    }

    /// Whether there is something to choose.
    fn is_open(&self, state: &State) -> bool {
        let State { core, left, .. } = state;
        let matters = self.matters(state);
        let is_disturbed = matters.edits
            || matters.input
            || matters.rollout
            || (0..self.scenario.toy.parts.len()).any(|at| matters.target(at));
        let is_risky = core.ask().is_some_and(|ask| {
            (is_effect(ask) && (left.unheard > 0 || left.crashes > 0))
                || (is_write(ask) && left.refusals > 0)
                || (is_read(ask) && left.stale > 0)
        });
        is_disturbed || is_risky || (core.run.is_none() && (!core.has_news || core.known != core.cluster.config))
    }

    /// What happens as long as there is nothing to choose.
    fn go_on(&self, state: &mut State) {
        for _ in 0..ENOUGH {
            if state.broken.is_some() || self.is_open(state) {
                return;
            }
            match &state.core.run {
                Some(_) => {
                    self.step(state, Fate::Answered);
                }
                None => state.core = self.memory.begin(&state.core, false),
            }
        }
    }

    /// One request of the operator and what becomes of it, watched.
    fn step(&self, state: &mut State, fate: Fate) -> Option<()> {
        let (next, turn) = self.memory.step(&state.core, fate)?;
        let broken = state.history.note(&self.memory.stage, &state.core, &next, &turn.deed);
        let broken = broken.or_else(|| self.ends_otherwise(&state.core, &next, fate).then_some(Broken::OtherEnd));
        state.broken = broken.filter(|broken| self.counts(*broken));
        state.core = next;
        Some(())
    }

    fn counts(&self, broken: Broken) -> bool {
        let rule = RULES.iter().find(|(_, rule)| *rule == broken);
        self.words.is_none_or(|words| rule.is_some_and(|(rule, _)| rules::matches(words, rule)))
    }

    /// If the process dies before or after a request that changes something, or does not hear of it, and nothing else happens,
    /// the end is the same. After an event in the midst of a session that need not be so: who begins anew sees the world after
    /// it.
    fn ends_otherwise(&self, core: &Core, next: &Core, fate: Fate) -> bool {
        if fate != Fate::Answered
            || !core.is_alone
            || !core.ask().is_some_and(is_effect)
            || !self.counts(Broken::OtherEnd)
        {
            return false;
        }
        let (memory, stage) = (&self.memory, &self.memory.stage);
        let end = memory.ending(core).result;
        let unheard = memory.step(core, Fate::Unheard).map(|(unheard, _)| unheard);
        let others = [stage.drop_run(core, false), stage.drop_run(next, false)];
        others.iter().chain(&unheard).any(|other| memory.ending(other).result != end)
    }

    /// Forgets what can make no difference any more.
    fn tidy(&self, state: &mut State) {
        if state.left.stale == 0 {
            state.core.cluster.forget_past();
        }
        if state.left.crashes == 0 {
            state.core.began = None;
        }
    }
}

impl Model for World {
    type State = State;
    type Action = Event;

    fn init_states(&self) -> Vec<State> {
        self.scenario.starts.iter().map(|start| self.start(start)).collect()
    }

    /// Everything that can happen next and makes a difference there. What somebody else does is tried right before a request
    /// that has to do with it; before any other request it would make no difference, and between sessions it is tried too.
    fn actions(&self, state: &State, actions: &mut Vec<Event>) {
        let State { core, left, .. } = state;
        if state.broken.is_some() {
            return;
        }
        if let Some(run) = &core.run {
            actions.push(Event::Step(Fate::Answered));
            if left.unheard > 0 && is_effect(&run.ask) {
                actions.push(Event::Step(Fate::Unheard));
            }
            if left.refusals > 0 && is_write(&run.ask) {
                actions.push(Event::Step(Fate::Refused));
            }
            if left.stale > 0 && is_read(&run.ask) {
                let targets = (0..self.scenario.toy.parts.len()).map(Old::Target);
                actions.extend(targets.chain([Old::Input]).map(|old| Event::Step(Fate::Stale(old))));
            }
            if left.crashes > 0 && is_effect(&run.ask) {
                actions.extend([false, true].map(|is_forgetful| Event::StepAndCrash { is_forgetful }));
            }
        } else if core.has_news {
            actions.push(Event::Begin { is_stale: false });
            if core.known != core.cluster.config {
                actions.push(Event::Begin { is_stale: true });
            }
        }
        let matters = self.matters(state);
        if matters.rollout {
            actions.push(Event::RollOut);
        }
        if matters.edits {
            actions.extend(self.scenario.edits.iter().map(|edit| Event::Edit(*edit)));
        }
        for at in (0..self.scenario.toy.parts.len()).filter(|at| matters.target(*at)) {
            actions.extend(self.scenario.meddlings.iter().map(|meddling| Event::Meddle(at, *meddling)));
        }
        if matters.input {
            actions.push(Event::Input(3 - core.cluster.input));
        }
    }

    fn next_state(&self, state: &State, event: Event) -> Option<State> {
        let mut next = state.clone();
        let core = &mut next.core;
        match event {
            Event::Begin { is_stale } => next.core = self.memory.begin(core, is_stale),
            Event::StepAndCrash { is_forgetful } => {
                next.left.crashes -= 1;
                self.step(&mut next, Fate::Answered)?;
                next.core = self.memory.stage.drop_run(&next.core, is_forgetful);
            }
            Event::Step(fate) => {
                next.left.unheard -= u8::from(fate == Fate::Unheard);
                next.left.refusals -= u8::from(fate == Fate::Refused);
                next.left.stale -= u8::from(matches!(fate, Fate::Stale(_)));
                self.step(&mut next, fate)?;
            }
            Event::RollOut => core.cluster.roll_out(),
            Event::Edit(edit) => {
                core.cluster.config = stamped(self.edit(&core.cluster.config, edit)?);
                next.left.edits -= 1;
                next.history.edited();
            }
            Event::Meddle(at, meddling) => {
                if !core.cluster.meddle(at, meddling) {
                    return None;
                }
                next.left.meddlings -= 1;
            }
            Event::Input(level) => {
                core.cluster.change_input(level);
                next.left.inputs -= 1;
            }
        }
        if matches!(event, Event::RollOut | Event::Edit(_) | Event::Meddle(..) | Event::Input(_)) {
            next.core.has_news = true;
            next.core.is_alone = false;
        }
        self.go_on(&mut next);
        self.tidy(&mut next);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        rules::properties(self.words)
    }
}

impl State {
    pub(crate) fn phase(&self) -> Option<Phase> {
        self.core.cluster.config.status.as_ref().and_then(|status| status.phase)
    }

    /// Whether an item is not known to be applied.
    pub(crate) fn is_unwritten(&self, at: usize) -> bool {
        let item = self.core.cluster.config.status.as_ref().and_then(|status| status.items.get(at));
        item.is_some_and(|item| item.applied_fingerprint.is_none())
    }
}

/// What a person wants to know of a state on the way to a broken rule.
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Core { cluster, run, .. } = &self.core;
        let (spec, status) = (&cluster.config.spec, cluster.config.status.clone().unwrap_or_default());
        let (phase, generation) = (status.phase.map_or("none", |it| it.as_str()), cluster.config.metadata.generation);
        let ask = run.as_ref().map(|run| format!("{:?}", run.ask).chars().take(40).collect::<String>());
        write!(f, "{phase} {}@{generation:?} input {}", spec.action, cluster.input)?;
        for item in &status.items {
            write!(f, " [{} {} {}]", item.name, item.state, item.applied_fingerprint.is_some())?;
        }
        for target in &cluster.targets {
            write!(f, " {}", target.held())?;
        }
        write!(f, " asks {ask:?} {:?}", self.broken)
    }
}
