//! One round of attention to a configuration, as values: what to ask of the API server next, given what it answered.
//!
//! Decisions are [`decide`]'s; this is the order in which they are carried out. A changed status is recorded before anything
//! else is done, with the version it was derived from. So nobody's edit is lost, and whatever happens to the process, the
//! next one goes on from what was recorded. An answer that does not come ends the round; the next begins from scratch.

use std::time::Duration;

use api::{
    VirtPlatformConfig,
    virt_platform_config::{Phase, VirtPlatformConfigStatus},
};
use k8s_openapi::jiff::Timestamp;

use crate::{
    Facts, Plan, Profile,
    machine::{News, Next, NoPlan, NotWritten, Observed, Rhythm, Written, decide},
    writing::{Do, Lock, Said, Writing},
};

/// No decision needs more steps than this in a row; more would be a circle.
const STEPS: usize = 64;

/// What is the same for all rounds.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    pub profile: &'static dyn Profile,
    pub version: &'a str,
    /// Which leader this is, if leaders are elected.
    pub epoch: Option<i64>,
    pub rhythm: Rhythm,
}

/// What to ask next.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// Replace the status of the configuration, over the version that it carries.
    Record(Box<VirtPlatformConfig>),
    /// Read the configuration.
    Reread,
    /// Find out what the profile wants to know.
    Look,
    /// Derive the plan from what was just seen, or else from what the cluster says now, and have it previewed.
    DrawUp { seen: Option<Facts> },
    /// Send this to the target of the item that is being written.
    Write(Do),
    /// Nothing more to do, for so long if nothing is heard.
    Rest(Option<Duration>),
    /// Try again after a while.
    Later(&'static str),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Recorded(Box<VirtPlatformConfig>),
    /// The configuration is no longer the version that was to be replaced; or perhaps it was replaced, and the answer lost.
    NotRecorded,
    Config(Option<Box<VirtPlatformConfig>>),
    Saw(Facts),
    Drew(Box<Result<Plan, NoPlan>>),
    Target(Said),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    config: Option<Box<VirtPlatformConfig>>,
    brought: Brought,
    /// Whether the API server has said in this round that the configuration is what it was taken for. What a watch brought
    /// may be old; before the world is changed, it has to be confirmed.
    is_confirmed: bool,
    /// What to do when the status is recorded.
    then: Option<Next>,
    writing: Option<Box<Writing>>,
    steps: usize,
}

/// What came of the last step; [`News`] borrows from it.
#[derive(Debug, Clone, PartialEq)]
enum Brought {
    Nothing,
    Saw(Facts),
    Drew(Box<Result<Plan, NoPlan>>),
    Wrote { item: String, result: Box<Result<Written, NotWritten>>, plan: Box<Plan> },
}

impl Brought {
    fn news(&self) -> News<'_> {
        match self {
            Brought::Nothing => News::Nothing,
            Brought::Saw(facts) => News::Saw(facts),
            Brought::Drew(result) => News::Drew(result.as_ref().as_ref()),
            Brought::Wrote { item, result, plan } => News::Wrote { item, result, plan },
        }
    }

    fn plan(&self) -> Option<&Plan> {
        match self {
            Brought::Drew(result) => result.as_ref().as_ref().ok(),
            Brought::Wrote { plan, .. } => Some(plan),
            Brought::Nothing | Brought::Saw(_) => None,
        }
    }
}

impl Session {
    /// Begins a round with the configuration as it was last heard of.
    pub fn new(config: VirtPlatformConfig) -> Self {
        Session {
            config: Some(Box::new(config)),
            brought: Brought::Nothing,
            is_confirmed: false,
            then: None,
            writing: None,
            steps: 0,
        }
    }

    /// The newest version of the configuration that is known. None when it is gone.
    pub fn config(&self) -> Option<&VirtPlatformConfig> {
        self.config.as_deref()
    }

    /// The item that is being written.
    pub fn writing(&self) -> Option<&Writing> {
        self.writing.as_deref()
    }

    /// Whether a plan is drawn up as soon as this is recorded, from nothing that was seen before: it may be begun meanwhile.
    pub fn draws_up_next(&self, recorded: &VirtPlatformConfig) -> bool {
        let phase = recorded.status.as_ref().and_then(|status| status.phase);
        matches!(phase, Some(Phase::Pending | Phase::Drafting)) && matches!(self.brought, Brought::Nothing)
    }

    pub fn begin(&mut self, setting: &Setting<'_>, now: Timestamp) -> Ask {
        self.decide(setting, now)
    }

    pub fn next(&mut self, setting: &Setting<'_>, now: Timestamp, reply: Reply) -> Ask {
        match reply {
            Reply::Recorded(config) => {
                self.config = Some(config);
                self.is_confirmed = true;
                return match self.then.take() {
                    Some(next) => self.perform(setting, now, next),
                    None => self.decide(setting, now),
                };
            }
            // What is there now tells.
            Reply::NotRecorded => {
                self.start_over();
                return Ask::Reread;
            }
            Reply::Config(config) => {
                let version = |config: &Option<Box<VirtPlatformConfig>>| {
                    config
                        .as_ref()
                        .map(|config| (config.metadata.uid.clone(), config.metadata.resource_version.clone()))
                };
                // Of what is newer we were told already, and nobody would tell us again.
                if is_older(config.as_deref(), self.config()) {
                    return Ask::Later("the API server answered with an old version of the configuration");
                }
                if version(&config) != version(&self.config) {
                    self.start_over();
                }
                self.config = config;
                self.is_confirmed = true;
            }
            Reply::Saw(facts) => self.brought = Brought::Saw(facts),
            Reply::Drew(drew) => self.brought = Brought::Drew(drew),
            Reply::Target(said) => {
                let Some(mut writing) = self.writing.take() else { return self.decide(setting, now) };
                let next = writing.next(said);
                return self.write(setting, now, writing, next);
            }
        }
        self.decide(setting, now)
    }

    fn start_over(&mut self) {
        self.brought = Brought::Nothing;
        self.then = None;
        self.writing = None;
    }

    fn decide(&mut self, setting: &Setting<'_>, now: Timestamp) -> Ask {
        self.steps += 1;
        if self.steps > STEPS {
            return Ask::Later("no rest after many steps; this is an error in the operator");
        }
        let Some(config) = &self.config else { return Ask::Rest(None) };
        let nothing = VirtPlatformConfigStatus::default();
        let status = config.status.as_ref().unwrap_or(&nothing);
        let observed = Observed {
            spec: &config.spec,
            generation: config.metadata.generation.unwrap_or_default(),
            status,
            profile: setting.profile,
            version: setting.version,
            epoch: setting.epoch,
            now,
            rhythm: setting.rhythm,
        };
        let decision = decide(&observed, &self.brought.news());
        if decision.status == *status {
            return self.perform(setting, now, decision.next);
        }
        let mut new = config.clone();
        new.metadata.managed_fields = None;
        new.status = Some(decision.status);
        self.then = Some(decision.next);
        Ask::Record(new)
    }

    fn perform(&mut self, setting: &Setting<'_>, now: Timestamp, next: Next) -> Ask {
        match next {
            Next::Continue => self.decide(setting, now),
            Next::Rest(rest) => Ask::Rest(rest),
            Next::Look => Ask::Look,
            Next::DrawUp => {
                let seen = std::mem::replace(&mut self.brought, Brought::Nothing);
                Ask::DrawUp { seen: if let Brought::Saw(facts) = seen { Some(facts) } else { None } }
            }
            Next::Write { .. } if !self.is_confirmed => Ask::Reread,
            Next::Write { item } => {
                let planned = self.brought.plan().and_then(|plan| {
                    let planned = plan.items.iter().find(|planned| planned.item.name == item)?;
                    Some((planned.clone(), plan.facts.target(&planned.item.target_ref).map(|live| live.cloned())))
                });
                let (Some((planned, seen)), Some(config)) = (planned, &self.config) else {
                    self.start_over();
                    return Ask::Reread;
                };
                let lock = if config.spec.bypass_optimistic_lock { Lock::Bypass } else { Lock::Compare };
                let (writing, next) = Writing::start(planned, lock, seen);
                self.write(setting, now, Box::new(writing), next)
            }
        }
    }

    fn write(&mut self, setting: &Setting<'_>, now: Timestamp, writing: Box<Writing>, next: Do) -> Ask {
        let result = match next {
            Do::End(result) => result,
            Do::Later => return Ask::Later("a target does not stand still"),
            next => {
                self.writing = Some(writing);
                return Ask::Write(next);
            }
        };
        let item = writing.planned().item.name.clone();
        let plan = match std::mem::replace(&mut self.brought, Brought::Nothing) {
            Brought::Drew(drew) => drew.ok().map(Box::new),
            Brought::Wrote { plan, .. } => Some(plan),
            Brought::Nothing | Brought::Saw(_) => None,
        };
        if let Some(plan) = plan {
            self.brought = Brought::Wrote { item, result: Box::new(result), plan };
        }
        self.decide(setting, now)
    }
}

/// Whether this is an earlier version of what is known, or something of the same name that was there before it.
fn is_older(config: Option<&VirtPlatformConfig>, known: Option<&VirtPlatformConfig>) -> bool {
    let version =
        |config: &VirtPlatformConfig| config.metadata.resource_version.as_deref().and_then(|text| text.parse().ok());
    let (Some(config), Some(known)) = (config, known) else { return false };
    let (new, old): (Option<u64>, Option<u64>) = (version(config), version(known));
    new.zip(old).is_some_and(|(new, old)| new < old)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(uid: &str, version: &str) -> Box<VirtPlatformConfig> {
        serde_json::from_value(json!({
            "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
            "metadata": {"name": "example-profile", "uid": uid, "resourceVersion": version, "generation": 1},
            "spec": {"profile": "example-profile", "action": "DryRun"},
        }))
        .unwrap()
    }

    /// Found by a random schedule: an old answer to a read after a lost write made the operator forget an edit.
    #[test]
    fn an_old_version_of_the_configuration_is_not_taken_for_the_newest() {
        let profile = crate::profiles::find("example-profile").unwrap();
        let setting = Setting { profile, version: "1", epoch: None, rhythm: Rhythm::default() };
        let mut session = Session::new(*config("u", "12"));
        let read = |session: &mut Session, uid, version| {
            session.next(&setting, Timestamp::UNIX_EPOCH, Reply::Config(Some(config(uid, version))))
        };
        assert!(matches!(read(&mut session, "u", "9"), Ask::Later(_)));
        assert_eq!(session.config().unwrap().metadata.resource_version.as_deref(), Some("12"));
        assert!(!matches!(read(&mut session, "u", "12"), Ask::Later(_)), "the same");
        assert!(matches!(read(&mut session, "t", "3"), Ask::Later(_)), "what had the name before");
        assert!(!matches!(read(&mut session, "v", "13"), Ask::Later(_)), "what has the name now");
    }

    /// What may be begun while the status is recorded is what is asked for afterwards, and nothing else is begun.
    #[test]
    fn a_plan_is_begun_early_only_if_it_is_drawn_up_next() {
        let profile = crate::profiles::find("example-profile").unwrap();
        let setting = Setting { profile, version: "1", epoch: None, rhythm: Rhythm::default() };
        let now = Timestamp::UNIX_EPOCH;
        let mut session = Session::new(*config("u", "1"));
        let mut ask = session.begin(&setting, now);
        let mut phases = Vec::new();
        while let Ask::Record(new) = ask {
            assert!(session.draws_up_next(&new), "{:?}", new.status);
            phases.push(new.status.as_ref().unwrap().phase.unwrap());
            ask = session.next(&setting, now, Reply::Recorded(new));
        }
        assert_eq!(phases, [Phase::Pending, Phase::Drafting]);
        assert_eq!(ask, Ask::DrawUp { seen: None });
        let nothing = Reply::Drew(Box::new(Err(NoPlan::Missing("it".into()))));
        let Ask::Record(told) = session.next(&setting, now, nothing) else { panic!("that is told") };
        assert!(!session.draws_up_next(&told), "there is nothing to draw up");

        let mut ignored = *config("u", "1");
        ignored.spec.action = api::virt_platform_config::Action::Ignore;
        let mut session = Session::new(ignored);
        let Ask::Record(told) = session.begin(&setting, now) else { panic!("that is told") };
        assert!(!session.draws_up_next(&told), "nobody asked for a plan");
    }
}
