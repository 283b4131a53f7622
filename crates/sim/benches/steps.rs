//! Steps per second of the simulator, nanoseconds per node and step, memory per recorded step, and instructions per step.
//! `cargo bench -p sim` prints times; `-- instructions` fails if the committed counts have grown, and `-- instructions update` rewrites
//! them; `-- optimum` prints how long the optimum takes and how well it is known.

use std::{
    path::Path,
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use sim::{
    ClusterModel, Run, RunSettings, Scenario,
    optimum::{BUDGET, Optimum, problem},
    scenario::generate::generate,
};

const SIZES: [(u32, u32); 4] = [(12, 648), (100, 5_000), (1_000, 50_000), (5_000, 250_000)];
/// The steps per second of the reference.
const REFERENCE: [f64; 4] = [45.0, 6.0, 0.65, 0.126];
/// Counts vary a little with the compiler. A greater difference is a change of the code.
const TOLERANCE: f64 = 0.10;
const COUNTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions.csv");

#[derive(Clone, Copy, PartialEq)]
enum Load {
    /// Loads are constant, and each step moves a VM.
    Constant,
    /// The load of one VM of each node changes in each step.
    Changing,
}

const LOADS: [(Load, &str); 2] = [(Load::Constant, "constant"), (Load::Changing, "changing")];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["count", load, nodes, vms, steps] => {
            let number = |text: &str| text.parse().expect("a number");
            let load = if *load == "constant" { Load::Constant } else { Load::Changing };
            count(load, number(nodes), number(vms), number(steps));
            ExitCode::SUCCESS
        }
        ["optimum"] => {
            optimum();
            ExitCode::SUCCESS
        }
        ["instructions", rest @ ..] => instructions(rest.contains(&"update")),
        _ => {
            times();
            ExitCode::SUCCESS
        }
    }
}

fn model(load: Load, nodes: u32, vms: u32) -> (ClusterModel, RunSettings) {
    let scenario: Scenario = generate(nodes, vms, 1, load == Load::Changing).expect("a scenario");
    let settings = RunSettings { measure: false, ..RunSettings::new(&scenario).expect("settings") };
    (ClusterModel::new(&scenario).expect("a model"), settings)
}

/// The length of a batch of steps. It is short, so that some batches run without interruption.
const BATCH: Duration = Duration::from_millis(1);

/// The cost of steps over several runs. A new run starts when no VM moves any more.
#[derive(Default)]
struct Cost {
    done: u32,
    spent: Duration,
    /// Seconds per step of the fastest batch, which had the processor for itself.
    best: f64,
    /// Bytes of history per step.
    bytes: usize,
}

fn steps(model: &ClusterModel, settings: RunSettings, load: Load, most: u32, at_least: Duration) -> Cost {
    let mut cost = Cost { best: f64::INFINITY, ..Cost::default() };
    let mut seed = 0;
    while cost.done < most && cost.spent < at_least {
        let mut run = Run::new(model, settings, seed);
        seed += 1;
        run.step();
        let mut moves_on = true;
        while moves_on && cost.done < most && cost.spent < at_least {
            let (mut batch, mut moved) = (0, run.history().moves().len());
            let start = Instant::now();
            while moves_on && cost.done + batch < most && (batch == 0 || start.elapsed() < BATCH) {
                run.step();
                batch += 1;
                let now = run.history().moves().len();
                moves_on = load == Load::Changing || now > moved;
                moved = now;
            }
            let spent = start.elapsed();
            cost.done += batch;
            cost.spent += spent;
            cost.best = cost.best.min(spent.as_secs_f64() / f64::from(batch));
        }
        cost.bytes = run.history().bytes() / run.step_number() as usize;
    }
    cost
}

fn times() {
    println!(
        "Simulation, AsymmetricLow, k=3, reference semantics, at most 5 evictions per step and 2 per node; one thread."
    );
    println!("STEPS/S is that of the fastest batch of a millisecond, MEAN that of all within a second.\n");
    println!(
        "{:>12}  {:<9} {:>10} {:>10} {:>9} {:>8} {:>14} {:>11} {:>9}",
        "NODES/VMS", "LOAD", "STEPS/S", "MEAN", "µS/STEP", "NS/NODE", "WITH MEASURES", "BYTES/STEP", "× REF"
    );
    for ((nodes, vms), reference) in SIZES.into_iter().zip(REFERENCE) {
        for (load, name) in LOADS {
            let (model, settings) = model(load, nodes, vms);
            let second = Duration::from_secs(1);
            steps(&model, settings, load, u32::MAX, second / 4);
            let cost = steps(&model, settings, load, u32::MAX, second);
            let measured = steps(&model, RunSettings { measure: true, ..settings }, load, u32::MAX, second / 2);
            println!(
                "{:>12}  {name:<9} {:>10.0} {:>10.0} {:>9.2} {:>8.2} {:>14.0} {:>11} {:>9.0}",
                format!("{nodes}/{vms}"),
                1.0 / cost.best,
                f64::from(cost.done) / cost.spent.as_secs_f64(),
                cost.best * 1e6,
                cost.best * 1e9 / f64::from(nodes),
                1.0 / measured.best,
                cost.bytes,
                1.0 / cost.best / reference
            );
        }
    }
}

fn optimum() {
    println!("{:>12} {:>9} {:>11} {:>15}", "NODES/VMS", "SECONDS", "BALANCED", "WIDEST GAP OF σ");
    for (nodes, vms) in [(12, 648), (100, 5_000), (500, 10_000), (1_000, 50_000)] {
        let (model, settings) = model(Load::Constant, nodes, vms);
        let start = Instant::now();
        let found = Optimum::of(&problem(&model, &settings, 0), BUDGET);
        let seconds = start.elapsed().as_secs_f64();
        let gap = |migrations: u64| found.spread(migrations) - found.bound(migrations);
        let widest = (0..=found.last()).map(gap).fold(0.0, f64::max);
        let balanced =
            [found.balanced_bound, found.balanced].map(|known| known.map_or("-".to_owned(), |n| n.to_string()));
        println!("{:>12} {seconds:>9.2} {:>11} {widest:>15.4}", format!("{nodes}/{vms}"), balanced.join(" to "));
    }
}

fn count(load: Load, nodes: u32, vms: u32, most: u32) {
    let (model, settings) = model(load, nodes, vms);
    assert_eq!(steps(&model, settings, load, most, Duration::from_secs(3600)).done, most);
}

/// Instructions per step: the difference of two runs, divided by the difference of their steps.
fn instructions(update: bool) -> ExitCode {
    let committed = std::fs::read_to_string(COUNTS).unwrap_or_default();
    let mut counts = "nodes,vms,load,instructionsPerStep\n".to_owned();
    let mut failed = false;
    for (nodes, vms) in SIZES {
        for (load, name) in LOADS {
            // A small cluster is balanced after few steps. More steps would count the start of the next run.
            let (few, many) = if nodes < 100 && load == Load::Constant { (1, 5) } else { (2, 12) };
            let (Some(less), Some(more)) = (collected(name, nodes, vms, few), collected(name, nodes, vms, many)) else {
                println!("valgrind is not here: no instructions were counted");
                return ExitCode::SUCCESS;
            };
            let each = (more - less) / u64::from(many - few);
            let key = format!("{nodes},{vms},{name},");
            let before = committed.lines().find_map(|line| line.strip_prefix(&key)).and_then(|text| text.parse().ok());
            let change = before.map(|before: f64| each as f64 / before - 1.0);
            let comparison = match change {
                None => "no count was committed".to_owned(),
                Some(change) if change > TOLERANCE => {
                    failed = true;
                    format!("{:+.1} %: too many", change * 100.0)
                }
                Some(change) => format!("{:+.1} %", change * 100.0),
            };
            println!("{:>14}  {name:<9} {each:>12} instructions per step  {comparison}", format!("{nodes}/{vms}"));
            counts += &format!("{key}{each}\n");
        }
    }
    if update {
        std::fs::write(COUNTS, counts).expect("the counts can be written");
        return ExitCode::SUCCESS;
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn collected(load: &str, nodes: u32, vms: u32, steps: u32) -> Option<u64> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(Path::new(&program))
        .args(["count", load])
        .args([nodes, vms, steps].map(|number| number.to_string()))
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().find_map(|line| line.split("Collected : ").nth(1)?.trim().parse().ok())
}
