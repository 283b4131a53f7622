//! Which test program runs next, given what runs now.

use super::TestProgram;

/// So many programs that wait for API servers run at a time. Each of them runs several tests at a time, so that a second program
/// made both slower than one after the other on two cores, and tests of timeouts failed.
const WAITING_AT_A_TIME: usize = 1;

/// The programs that need the processor all the time.
const PROCESSOR: [&str; 3] = ["model", "lease_model", "schedules"];
/// The program that compares the lab's real time with the simulator's, which a busy machine would falsify.
const UNDISTURBED: &str = "closed_loop";
/// These take longest, so they start first.
const LONGEST: [&str; 4] = ["operator it", "lab-parts it", "operator faults", "xtask it"];
/// The tests of the schedules that compare the model with a real API server.
const FIDELITY: &str = "fidelity";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// Waits for API servers most of the time.
    Waiting,
    /// Beside the others at low priority, one at a time.
    Processor,
    /// When nothing that waits runs or is left.
    Undisturbed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) program: TestProgram,
    pub(super) lane: Lane,
    /// Arguments that choose among its tests.
    pub(super) filter: &'static [&'static str],
}

impl Run {
    pub(super) fn title(&self) -> String {
        let TestProgram { package, target, .. } = &self.program;
        let only = if self.filter == [FIDELITY] { " fidelity" } else { "" };
        format!("{package} {target}{only}")
    }

    fn rank(&self) -> usize {
        let title = self.title();
        LONGEST.iter().position(|longest| *longest == title).unwrap_or(LONGEST.len())
    }
}

/// The runs that have not started.
pub(super) struct Schedule(Vec<Run>);

impl Schedule {
    pub(super) fn new(programs: &[TestProgram]) -> Self {
        let mut runs: Vec<Run> = programs.iter().cloned().flat_map(runs).collect();
        runs.sort_by_key(Run::rank);
        Schedule(runs)
    }

    pub(super) fn waiting(&self) -> usize {
        self.0.len()
    }

    /// Takes a run that can start beside those in `running`.
    pub(super) fn next(&mut self, running: &[Lane]) -> Option<Run> {
        let count = |lane| running.iter().filter(|running| **running == lane).count();
        let nothing_waits = count(Lane::Waiting) == 0 && !self.0.iter().any(|run| run.lane == Lane::Waiting);
        let can_start = |run: &Run| match run.lane {
            Lane::Waiting => count(Lane::Waiting) < WAITING_AT_A_TIME,
            Lane::Processor => count(Lane::Processor) == 0,
            Lane::Undisturbed => nothing_waits && count(Lane::Undisturbed) == 0,
        };
        let position = self.0.iter().position(can_start)?;
        Some(self.0.remove(position))
    }
}

fn runs(program: TestProgram) -> Vec<Run> {
    let run = |lane, filter| Run { program: program.clone(), lane, filter };
    match program.target.as_str() {
        "schedules" => {
            vec![run(Lane::Processor, &["--skip", FIDELITY]), run(Lane::Waiting, &[FIDELITY])]
        }
        target if PROCESSOR.contains(&target) => vec![run(Lane::Processor, &[])],
        UNDISTURBED => vec![run(Lane::Undisturbed, &[])],
        _ => vec![run(Lane::Waiting, &[])],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(package: &str, target: &str) -> TestProgram {
        TestProgram { package: package.into(), target: target.into(), path: "/t".into(), folder: "/w".into() }
    }

    fn titles(schedule: &mut Schedule, running: &mut Vec<Lane>) -> Vec<String> {
        let mut started = Vec::new();
        while let Some(run) = schedule.next(running) {
            running.push(run.lane);
            started.push(run.title());
        }
        started
    }

    #[test]
    fn one_program_waits_beside_one_that_computes_and_the_closed_loop_comes_last() {
        let programs = [
            program("api", "api"),
            program("advisor", "model"),
            program("lab", "closed_loop"),
            program("operator", "schedules"),
            program("operator", "it"),
        ];
        let mut schedule = Schedule::new(&programs);
        let mut running = Vec::new();
        assert_eq!(titles(&mut schedule, &mut running), ["operator it", "advisor model"]);

        running.retain(|lane| *lane == Lane::Processor);
        assert_eq!(titles(&mut schedule, &mut running), ["api api"]);

        running.retain(|lane| *lane == Lane::Processor);
        assert_eq!(titles(&mut schedule, &mut running), ["operator schedules fidelity"]);
        assert!(titles(&mut schedule, &mut running).is_empty(), "a program waits for an API server");

        running.clear();
        assert_eq!(titles(&mut schedule, &mut running), ["lab closed_loop", "operator schedules"]);
        assert_eq!(schedule.waiting(), 0);
    }

    #[test]
    fn every_test_of_the_schedules_runs_once() {
        let filters: Vec<_> = runs(program("operator", "schedules")).iter().map(|run| run.filter).collect();
        assert_eq!(filters, [&["--skip", FIDELITY] as &[&str], &[FIDELITY]]);
    }
}
