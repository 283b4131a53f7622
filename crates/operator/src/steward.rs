//! The steward of one configuration: observe, decide, act, record; then wait for news.
//!
//! A changed status is recorded before anything else is done, with the version it was derived from. So nobody's edit is lost,
//! and whatever happens to this process, the next one goes on from what was recorded.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use advisor::{
    Facts, Plan, Profile, Query,
    machine::{News, Next, NoPlan, NotWritten, Observed, Rhythm, Written, decide, happenings},
};
use api::{VirtPlatformConfig, virt_platform_config::VirtPlatformConfigStatus};
use http::Method;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::{
    Class, DrawUpError, Kubernetes, Lock, RequestError, WriteError, advertise,
    draw_up::draw_up_from,
    events::Events,
    fetch::fetch,
    inbox::{Inbox, Root},
    knowledge::{Knowledge, is_constant},
    patience::{Patience, spread},
    request::ATTEMPTS,
    root,
    watches::Watches,
};

/// No decision needs more steps than this in a row; more would be a circle.
const STEPS: usize = 64;

/// A definition that just appeared may take a moment until its kind is served.
const SOON: Duration = Duration::from_secs(1);
const SETTLING: Duration = Duration::from_secs(15);

pub(crate) struct Steward {
    pub(crate) position: usize,
    pub(crate) profile: &'static dyn Profile,
    pub(crate) kubernetes: Kubernetes,
    pub(crate) events: Events,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) watches: Arc<Watches>,
    pub(crate) version: String,
    pub(crate) rhythm: Rhythm,
    pub(crate) state: State,
}

#[derive(Default)]
pub(crate) struct State {
    /// The newest version of the configuration that is known, by watch or by our own write.
    config: Option<Arc<VirtPlatformConfig>>,
    /// Whether the watch has told yet whether there is one.
    is_known: bool,
    knowledge: Knowledge,
    /// When the definition of a kind last changed.
    definitions_changed: Option<Instant>,
}

/// What came of the last step; [`News`] borrows from it.
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

    fn into_plan(self) -> Option<Box<Plan>> {
        match self {
            Brought::Drew(result) => result.ok().map(Box::new),
            Brought::Wrote { plan, .. } => Some(plan),
            Brought::Nothing | Brought::Saw(_) => None,
        }
    }
}

impl Steward {
    /// Works until it is dropped.
    pub(crate) async fn work(mut self) {
        let mut patience = Patience::default();
        let mut due: Option<Instant> = None;
        let mut is_recheck = false;
        loop {
            let timer = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.inbox.arrival() => {
                    if !self.read_mail() {
                        continue;
                    }
                }
                () = timer => {
                    if is_recheck {
                        self.state.knowledge.forget_all();
                    }
                }
            }
            match self.attend().await {
                Ok(rest) => {
                    patience.reset();
                    is_recheck = true;
                    due = rest.map(|rest| Instant::now() + self.until(rest));
                }
                Err(error) => {
                    let wait = patience.next();
                    warn!(config = self.name(), %error, retry_in = ?wait, "could not go on");
                    is_recheck = false;
                    due = Some(Instant::now() + wait);
                }
            }
            self.watches.attend(self.position, &self.interests());
        }
    }

    fn name(&self) -> &'static str {
        self.profile.about().name
    }

    /// When to look again. A little irregular, so that not everybody asks at once; and soon, when a kind is just coming up.
    fn until(&self, rest: Duration) -> Duration {
        let settling = self.state.definitions_changed.is_some_and(|changed| changed.elapsed() < SETTLING);
        if rest == self.rhythm.prerequisites && settling {
            return SOON.min(rest);
        }
        let regular = rest == self.rhythm.prerequisites || rest == self.rhythm.recheck;
        if regular { spread(rest) } else { rest }
    }

    /// Takes in what the watches told. Whether anything of it matters.
    fn read_mail(&mut self) -> bool {
        let mail = self.inbox.take();
        let mut matters = false;
        for kind in mail.kinds {
            if self.state.knowledge.forget_kind(kind) {
                self.state.definitions_changed = Some(Instant::now());
                matters = true;
            }
        }
        for (query, sighting) in &mail.sightings {
            matters |= self.state.knowledge.absorb(query, sighting);
        }
        match mail.root {
            Some(Root::Absent) => {
                matters = true;
                self.state.config = None;
                self.state.is_known = true;
            }
            Some(Root::Present(config)) if self.is_news(&config) => {
                matters = true;
                self.state.config = Some(config);
                self.state.is_known = true;
            }
            Some(Root::Present(_)) | None => {}
        }
        matters
    }

    /// Whether a configuration that the watch brought is newer than the one that is known. Our own writes come back too.
    fn is_news(&self, config: &VirtPlatformConfig) -> bool {
        let Some(known) = &self.state.config else { return true };
        let version =
            |config: &VirtPlatformConfig| config.resource_version().and_then(|version| version.parse::<u64>().ok());
        known.uid() != config.uid()
            || match (version(known), version(config)) {
                (Some(known), Some(new)) => new > known,
                _ => known.resource_version() != config.resource_version(),
            }
    }

    /// What to watch: everything that was asked for, except what is watched anyhow or never changes.
    fn interests(&self) -> BTreeSet<Query> {
        self.state.knowledge.facts().queries().filter(|query| !is_constant(query)).cloned().collect()
    }

    /// Everything there is to do now. How long to rest afterwards, if nothing is heard.
    async fn attend(&mut self) -> Result<Option<Duration>, RequestError> {
        let about = self.profile.about();
        let Some(config) = self.state.config.clone() else {
            self.state.knowledge.forget_all();
            if about.advertised && self.state.is_known {
                advertise::offer(&self.kubernetes, about).await?;
            }
            return Ok(None);
        };
        if about.advertised {
            advertise::refresh(&self.kubernetes, about, &config).await?;
        }
        self.reconcile().await
    }

    async fn reconcile(&mut self) -> Result<Option<Duration>, RequestError> {
        let mut brought = Brought::Nothing;
        // What the watch brought may be old. Before the world is changed, the API server has to have confirmed it.
        let mut confirmed = false;
        for _ in 0..STEPS {
            let Some(config) = self.state.config.clone() else { return Ok(None) };
            let nothing = VirtPlatformConfigStatus::default();
            let status = config.status.as_ref().unwrap_or(&nothing);
            let observed = Observed {
                spec: &config.spec,
                generation: config.metadata.generation.unwrap_or_default(),
                status,
                profile: self.profile,
                version: &self.version,
                now: Timestamp::now(),
                rhythm: self.rhythm,
            };
            let decision = decide(&observed, &brought.news());
            if decision.status != *status {
                if !self.record(&config, decision.status).await? {
                    brought = Brought::Nothing;
                    continue;
                }
                confirmed = true;
            }
            brought = match decision.next {
                Next::Continue => brought,
                Next::Rest(rest) => return Ok(rest),
                Next::Look => Brought::Saw(self.look(&config).await?),
                Next::DrawUp => {
                    let seen = if let Brought::Saw(facts) = brought { Some(facts) } else { None };
                    Brought::Drew(Box::new(self.draw_up(&config, seen).await?))
                }
                Next::Write { .. } if !confirmed => {
                    confirmed = self.confirm(&config).await?;
                    if confirmed { brought } else { Brought::Nothing }
                }
                Next::Write { item } => match brought.into_plan() {
                    Some(plan) => self.write(&config, item, plan).await?,
                    None => Brought::Nothing,
                },
            };
        }
        Err(RequestError {
            doing: format!("deciding about VirtPlatformConfig {}", self.name()),
            message: format!("no rest after {STEPS} steps; this is an error in the operator"),
            class: Class::Other,
        })
    }

    /// Writes the status over the version it was derived from. Whether it was still that version.
    async fn record(
        &mut self,
        config: &VirtPlatformConfig,
        status: VirtPlatformConfigStatus,
    ) -> Result<bool, RequestError> {
        let mut new = config.clone();
        new.metadata.managed_fields = None;
        let before = new.status.replace(status.clone()).unwrap_or_default();
        let uri = root::object(self.name(), "/status?fieldManager=virt-advisor-operator");
        let doing = format!("recording the status of VirtPlatformConfig {}", self.name());
        match self.kubernetes.call(Method::PUT, uri, Some("application/json"), &json!(new), doing).await {
            Ok(stored) => {
                self.tell(config, &before, &status);
                self.learn_config(stored)?;
                Ok(true)
            }
            // Somebody else was faster, or the answer was lost: what is there now tells.
            Err(error) if matches!(error.class, Class::Conflict | Class::Unknown) => {
                self.reread().await?;
                Ok(false)
            }
            Err(error) if error.class == Class::NotFound => {
                self.state.config = None;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the configuration is still what it was when it was last heard of.
    async fn confirm(&mut self, config: &VirtPlatformConfig) -> Result<bool, RequestError> {
        self.reread().await?;
        let version = |config: &VirtPlatformConfig| (config.uid(), config.resource_version());
        Ok(self.state.config.as_ref().is_some_and(|now| version(now) == version(config)))
    }

    async fn reread(&mut self) -> Result<(), RequestError> {
        let doing = format!("reading VirtPlatformConfig {}", self.name());
        match self.kubernetes.call(Method::GET, root::object(self.name(), ""), None, &Value::Null, doing).await {
            Ok(object) => self.learn_config(object),
            Err(error) if error.class == Class::NotFound => {
                self.state.config = None;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn learn_config(&mut self, object: Value) -> Result<(), RequestError> {
        let config = serde_json::from_value(object).map_err(|error| RequestError {
            doing: format!("reading VirtPlatformConfig {}", self.name()),
            message: error.to_string(),
            class: Class::Other,
        })?;
        self.state.config = Some(Arc::new(config));
        Ok(())
    }

    /// Log and events tell the same story.
    fn tell(&self, config: &VirtPlatformConfig, before: &VirtPlatformConfigStatus, after: &VirtPlatformConfigStatus) {
        for happening in happenings(before, after) {
            let phase = after.phase.map(|phase| phase.as_str()).unwrap_or_default();
            match happening.warning {
                true => warn!(config = self.name(), phase, reason = happening.reason, "{}", happening.note),
                false => info!(config = self.name(), phase, reason = happening.reason, "{}", happening.note),
            }
            self.events.publish(config, &happening);
        }
    }

    async fn look(&mut self, config: &VirtPlatformConfig) -> Result<Facts, RequestError> {
        let Ok(planner) = self.profile.resolve(config.spec.options.as_ref()) else { return Ok(Facts::default()) };
        let facts = fetch(&self.kubernetes, planner.as_ref(), self.state.knowledge.facts().clone()).await?;
        self.state.knowledge.learn(facts.clone());
        Ok(facts)
    }

    /// A plan from what was just seen, or else from what the cluster says now and not from what was heard earlier. Errors are
    /// those that may pass.
    async fn draw_up(
        &mut self,
        config: &VirtPlatformConfig,
        mut seen: Option<Facts>,
    ) -> Result<Result<Plan, NoPlan>, RequestError> {
        let planner = match self.profile.resolve(config.spec.options.as_ref()) {
            Ok(planner) => planner,
            Err(error) => return Ok(Err(error.into())),
        };
        let mut attempt = 1;
        loop {
            let known = seen.take().unwrap_or_else(|| self.state.knowledge.constants());
            let facts = match fetch(&self.kubernetes, planner.as_ref(), known).await {
                Ok(facts) => facts,
                Err(error) => return lasting(error).map(|why| Err(NoPlan::Impossible(why))),
            };
            self.state.knowledge.learn(facts.clone());
            return match draw_up_from(&self.kubernetes, self.profile, planner.as_ref(), facts).await {
                Ok(plan) => Ok(Ok(plan)),
                Err(DrawUpError::Request(error)) if error.class == Class::Conflict && attempt < ATTEMPTS => {
                    attempt += 1;
                    continue;
                }
                Err(DrawUpError::MissingPrerequisites(missing)) => Ok(Err(NoPlan::Missing(missing))),
                Err(DrawUpError::InvalidOptions(error)) => Ok(Err(error.into())),
                Err(DrawUpError::Request(error)) => lasting(error).map(|why| Err(NoPlan::Impossible(why))),
            };
        }
    }

    async fn write(
        &mut self,
        config: &VirtPlatformConfig,
        item: String,
        plan: Box<Plan>,
    ) -> Result<Brought, RequestError> {
        let Some(planned) = plan.items.iter().find(|planned| planned.item.name == item) else {
            return Ok(Brought::Nothing);
        };
        let lock = if config.spec.bypass_optimistic_lock { Lock::Bypass } else { Lock::Compare };
        debug!(config = self.name(), item, target = %planned.target, "writing");
        let query = Query::Object(planned.target.clone());
        self.state.knowledge.forget(&query);
        let seen = plan.facts.target(&planned.item.target_ref).map(|live| live.cloned());
        let result = match self.kubernetes.write_to(planned, lock, seen).await {
            Ok(written) => {
                if let Written::Applied(object) | Written::Found(object) = &written {
                    self.state.knowledge.remember(query, planned.version, (**object).clone());
                }
                Ok(written)
            }
            Err(WriteError::Stale { target }) => Err(NotWritten::Stale { target }),
            Err(WriteError::Refused(refusal)) => Err(NotWritten::Failed(refusal.to_string())),
            Err(WriteError::Request(error)) => Err(NotWritten::Failed(lasting(error)?)),
        };
        Ok(Brought::Wrote { item, result: Box::new(result), plan })
    }
}

/// An error that will not pass by itself, in words; any other is returned as it is, to try again.
fn lasting(error: RequestError) -> Result<String, RequestError> {
    match error.class {
        Class::Busy
        | Class::Unknown
        | Class::Conflict
        | Class::Unauthenticated
        | Class::NotFound
        | Class::KindMissing => Err(error),
        _ => Ok(error.to_string()),
    }
}
