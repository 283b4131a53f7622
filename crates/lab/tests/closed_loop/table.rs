//! All algorithms in the real loop, as a page of the documentation.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
    time::Instant,
};

use balance::{Algorithm, Mode};
use futures::{StreamExt, stream};
use lab::play::Placement;
use tokio::runtime::Runtime;

use crate::{
    course::{Course, Parts, run_with},
    reason::reason,
    skews::{placement_skew, use_skew},
};

const SEED: u64 = 1;
/// The number of labs that run at a time.
const AT_ONCE: usize = 2;

const HEADER: &str = "\
<!-- Made by `make lab-table`, which runs the loop for every row. Do not edit it by hand. -->

# The algorithms in the loop

What each of the [20 algorithms](PROMETHEUS_ALGORITHMS.md) makes of a skew when it drives the real descheduler: real Prometheus, the real
scheduler, the soft-tainter, migrations that take their time, and no other intervention. Five nodes of 32 cores, 100 VMs of one core and
2 GiB, at most 5 evictions per cycle and 2 per node. The plugin [KubevirtMigrationAware](descheduler.md#the-plugin-kubevirtmigrationaware)
is off; the simulator shows [what it changes](simulator.md#the-cool-down-of-the-descheduler).

* **Spread** is the standard deviation of CPU use over the nodes, at the beginning and at the end.
* **Stops**: nothing was evicted in the ten cycles after that one. A run is watched until then, or for 31 cycles.
* **Why** is told where the loop goes on, or stops before the spread has fallen by as much as the lab asks of its default. It is derived
  from the loads that were seen at the end and the scores that the algorithm gives them, in percent.

It is one run each, with one seed. Another run of the same row may differ by a few migrations: the descheduler takes VMs of equal rank in
any order. `make lab-table` makes this page anew, which takes about half an hour; with `ONLY=pareto_front` only
that row.
";

/// A skew, its thresholds, and the share by which the spread has to fall with the default algorithm.
struct Skew {
    title: &'static str,
    text: &'static str,
    placement: fn(u64) -> Placement,
    mode: Mode,
    enough: f64,
}

const SKEWS: [Skew; 2] = [
    Skew {
        title: "VMs in the wrong places",
        text: "The VMs are placed 40/40/7/7/6 and use from a tenth of a core to all of it.",
        placement: placement_skew,
        mode: Mode::AsymmetricLow,
        enough: 0.75,
    },
    Skew {
        title: "VMs that use more than others",
        text: "20 VMs on each node, with 70 to 100 % use on two nodes and 10 to 40 % on the others: what they request is even.",
        placement: use_skew,
        mode: Mode::Low,
        enough: 0.60,
    },
];

/// The result of a run and the reason for it, or why the run failed.
type Outcome = Result<(Course, Option<String>), String>;

async fn measure(algorithm: Algorithm, skew: &'static Skew) -> Outcome {
    // Each run has a runtime of its own, so that a run that panics does not end the others.
    let run = tokio::task::spawn_blocking(move || {
        let placement = (skew.placement)(SEED);
        let record =
            Runtime::new().unwrap().block_on(run_with(&placement, &algorithm, skew.mode, Parts::WITHOUT_PLUGIN));
        let reason = reason(&algorithm, skew.mode, &record, skew.enough);
        (record.course, reason)
    });
    run.await.map_err(|failure| {
        let words = failure.try_into_panic().ok().and_then(|words| words.downcast::<String>().ok());
        words.map_or_else(|| "the run failed".to_owned(), |words| *words)
    })
}

fn cells(outcome: &Outcome) -> String {
    match outcome {
        Ok((course, reason)) => format!(
            "{:.3} → {:.3} | {:.0} % | {} | {} | {} | {}",
            course.before,
            course.after,
            course.gain() * 100.0,
            course.migrations,
            course.repeated,
            stop(course),
            reason.as_deref().unwrap_or_default()
        ),
        Err(problem) => format!(" | | | | | not measured: {}", problem.lines().next().unwrap_or_default()),
    }
}

fn stop(course: &Course) -> String {
    match (course.stops(), course.last) {
        (true, 0) => "never begins".to_owned(),
        (true, last) => format!("after cycle {last}"),
        (false, last) => format!("no: still evicts in cycle {last}"),
    }
}

/// The heading before the rows of a skew.
fn title(skew: &Skew) -> String {
    format!("## {}\n", skew.title)
}

fn row(at: usize) -> String {
    format!("| {} | {} | ", at + 1, Algorithm::all()[at].name())
}

/// `cells` returns the cells of a skew and an algorithm, both by their index.
fn page(cells: impl Fn(usize, usize) -> String) -> String {
    let mut page = HEADER.to_owned();
    for (number, skew) in SKEWS.iter().enumerate() {
        let (below, above) = skew.mode.percent();
        let _ = write!(
            page,
            "\n{}\n{} Thresholds {} ({below}/{above}).\n\n\
             | # | Algorithm | Spread | Falls by | Migrations | VMs moved more than once | Stops | Why |\n\
             |---|---|---|---|---|---|---|---|\n",
            title(skew),
            skew.text,
            skew.mode.name(),
        );
        for at in 0..Algorithm::all().len() {
            let _ = writeln!(page, "{}{} |", row(at), cells(number, at));
        }
    }
    page
}

/// The cells of an algorithm on a page.
fn said<'a>(page: &'a str, skew: &Skew, at: usize) -> Option<&'a str> {
    let (_, section) = page.split_once(&title(skew))?;
    section.lines().find_map(|line| line.strip_prefix(&row(at))?.strip_suffix(" |"))
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab/loop-table.md")
}

/// The indexes of the algorithms whose slugs are listed, or of all if none is.
fn wanted(only: &str) -> Vec<usize> {
    let only: Vec<Algorithm> = only.split_whitespace().map(|slug| slug.parse().unwrap()).collect();
    let is_wanted = |at: &usize| only.is_empty() || only.contains(&Algorithm::all()[*at]);
    (0..Algorithm::all().len()).filter(is_wanted).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half an hour and writes a page: `make lab-table` runs it"]
async fn lab_table() {
    let began = Instant::now();
    let wanted = wanted(&std::env::var("LAB_TABLE_ONLY").unwrap_or_default());
    let jobs: Vec<(usize, usize)> =
        (0..SKEWS.len()).flat_map(|skew| wanted.iter().map(move |at| (skew, *at))).collect();
    let all = jobs.len();
    println!("{all} runs, {AT_ONCE} at a time");
    let mut runs = stream::iter(jobs)
        .map(|(skew, at)| async move { (skew, at, measure(Algorithm::all()[at], &SKEWS[skew]).await) })
        .buffer_unordered(AT_ONCE);
    let (mut failed, mut done) = (Vec::new(), 0);
    while let Some((skew, at, outcome)) = runs.next().await {
        done += 1;
        let (which, minutes) =
            (format!("{}, {}", Algorithm::all()[at].name(), SKEWS[skew].title), began.elapsed().as_secs() / 60);
        println!("[{done}/{all}, {minutes} min] {which}: {}", cells(&outcome));
        match outcome {
            Ok(_) => write_row(skew, at, &cells(&outcome)),
            Err(_) => failed.push(which),
        }
    }
    assert!(failed.is_empty(), "these runs failed: {failed:?}");
}

/// Writes a row at once and keeps all others, so no result is lost when a later run fails.
fn write_row(skew: usize, at: usize, cells_of_it: &str) {
    let before = std::fs::read_to_string(file()).unwrap_or_default();
    std::fs::write(file(), with_row(&before, skew, at, cells_of_it)).unwrap();
}

fn with_row(before: &str, skew: usize, at: usize, cells_of_it: &str) -> String {
    let unknown = || cells(&Err("it was not run".into()));
    let kept = |skew: usize, at: usize| said(before, &SKEWS[skew], at).map_or_else(unknown, str::to_owned);
    page(|number, row| if (number, row) == (skew, at) { cells_of_it.to_owned() } else { kept(number, row) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(last: u64, cycles: u64) -> Course {
        Course {
            before: 0.2725,
            after: 0.0317,
            cycles,
            last,
            active: last,
            evictions: 36,
            migrations: 36,
            most_of_one: 2,
            repeated: 3,
            moved_again: 3,
            took: 2.0,
        }
    }

    #[test]
    fn a_row_says_how_far_with_how_many_moves_and_whether_it_stops() {
        let cells_of = |course, why: Option<&str>| cells(&Ok((course, why.map(str::to_owned))));
        assert_eq!(cells_of(course(10, 20), None), "0.273 → 0.032 | 88 % | 36 | 3 | after cycle 10 | ");
        let flaps = cells_of(course(31, 31), Some("because"));
        assert_eq!(flaps, "0.273 → 0.032 | 88 % | 36 | 3 | no: still evicts in cycle 31 | because");
        assert_eq!(stop(&course(0, 11)), "never begins");
        assert_eq!(cells(&Err("late\nmore".into())), " | | | | | not measured: late");
    }

    #[test]
    fn every_row_has_as_many_cells_as_the_heading() {
        let outcome = |skew, at| if (skew + at) % 2 == 0 { Ok((course(1, 11), None)) } else { Err("x".into()) };
        let page = page(|skew, at| cells(&outcome(skew, at)));
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), 2 * (20 + 2));
        for row in rows {
            assert_eq!(row.matches('|').count(), 9, "{row}");
        }
    }

    #[test]
    fn the_page_that_is_shown_has_todays_words_and_a_result_for_every_algorithm_and_skew() {
        let shown = std::fs::read_to_string(file()).unwrap();
        let again = page(|skew, at| said(&shown, &SKEWS[skew], at).expect("every row is there").to_owned());
        assert_eq!(shown, again, "`make lab-table` makes it anew");
        assert!(!shown.contains("not measured"), "`make lab-table` makes it anew");
    }

    #[test]
    fn a_row_is_found_again_under_its_skew() {
        let page = page(|skew, at| format!("{skew} {at}"));
        for (skew, at) in [(0, 0), (0, 18), (1, 0), (1, 15)] {
            assert_eq!(said(&page, &SKEWS[skew], at), Some(format!("{skew} {at}").as_str()));
        }
        assert_eq!(said("", &SKEWS[0], 0), None);
    }

    #[test]
    fn a_new_row_leaves_the_others_as_they_are() {
        let page = with_row("", 0, 3, "first");
        assert_eq!(said(&page, &SKEWS[0], 4), Some(" | | | | | not measured: it was not run"));
        let page = with_row(&with_row(&page, 1, 3, "second"), 1, 3, "third");
        assert_eq!((said(&page, &SKEWS[0], 3), said(&page, &SKEWS[1], 3)), (Some("first"), Some("third")));
    }

    #[test]
    fn all_algorithms_are_run_unless_some_are_named() {
        assert_eq!(wanted("").len(), 20);
        assert_eq!(wanted("pareto_front max_metric"), [1, 7]);
    }
}
