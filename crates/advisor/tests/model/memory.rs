//! Steps of the operator, remembered: what follows from a cluster and a session follows from them whatever led there.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{
    ending::Ending,
    hashed::digest,
    operator::{Core, Deed, Fate, Stage},
};

/// How many steps are remembered at most: the sessions in them are large. Endings are small and all kept.
const MOST: usize = 20_000;

type Step = Option<Arc<(Core, Deed)>>;

#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) stage: Stage,
    steps: Mutex<HashMap<u64, Step>>,
    endings: Mutex<HashMap<u64, Arc<Ending>>>,
    /// The most steps that were ever needed to come to rest.
    pub(crate) longest: AtomicUsize,
}

impl Memory {
    pub(crate) fn new(stage: Stage) -> Self {
        Memory { stage, steps: Mutex::default(), endings: Mutex::default(), longest: AtomicUsize::new(0) }
    }

    pub(crate) fn step(&self, core: &Core, fate: Fate) -> Step {
        let key = digest((core, fate));
        if let Some(known) = self.steps.lock().unwrap().get(&key) {
            return known.clone();
        }
        let step = self.stage.step(core, fate).map(Arc::new);
        let mut steps = self.steps.lock().unwrap();
        if steps.len() >= MOST {
            steps.clear();
        }
        steps.insert(key, step.clone());
        step
    }

    pub(crate) fn known_ending(&self, core: &Core) -> Option<Arc<Ending>> {
        self.endings.lock().unwrap().get(&digest(core)).cloned()
    }

    pub(crate) fn keep_ending(&self, core: &Core, ending: Arc<Ending>) {
        self.longest.fetch_max(ending.steps, Ordering::Relaxed);
        self.endings.lock().unwrap().insert(digest(core), ending);
    }
}
