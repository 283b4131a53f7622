//! The number of instructions of a classification, counted with callgrind for one compiler and one kind of processor. `cargo bench -p
//! balance --bench instructions` fails when a count of `instructions.txt` has grown by more than 3 %; with `-- --update` it writes the
//! file.

mod cases;

use std::{collections::BTreeMap, env, fmt::Write, fs, path::Path, process::Command};

use balance::{Algorithm, Semantics, Signals};
use cases::{Classification, SIZES, cluster};

const TOLERANCE: f64 = 0.03;
const UNDER_CALLGRIND: &str = "--measure";

#[inline(never)]
fn measured(classification: &mut Classification, signals: &Signals) {
    classification.run(signals);
}

/// In the order in which they are measured.
fn cases() -> impl Iterator<Item = (Algorithm, usize)> {
    Algorithm::all().into_iter().flat_map(|algorithm| SIZES.map(|nodes| (algorithm, nodes)))
}

fn measure() {
    for (algorithm, nodes) in cases() {
        let signals = cluster(nodes);
        let mut classification = Classification::new(algorithm, Semantics::Descheduler);
        // The first run grows the buffers.
        classification.run(&signals);
        measured(&mut classification, &signals);
    }
}

/// The counts of all cases, in order.
fn count() -> Result<Vec<u64>, Box<dyn std::error::Error>> {
    let folder = env::temp_dir().join(format!("balance-instructions-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let run = Command::new("valgrind")
        .args(["-q", "--tool=callgrind", "--collect-atstart=no"])
        .args(["--toggle-collect=instructions::measured", "--dump-after=instructions::measured"])
        .arg(format!("--callgrind-out-file={}", folder.join("out").display()))
        .arg(env::current_exe()?)
        .arg(UNDER_CALLGRIND)
        .output();
    let counts = run.map_err(|problem| format!("valgrind cannot be run: {problem}")).and_then(|run| {
        if !run.status.success() {
            return Err(format!("valgrind failed: {}", String::from_utf8_lossy(&run.stderr)));
        }
        (1..=cases().count()).map(|at| total(&folder.join(format!("out.{at}")))).collect()
    });
    fs::remove_dir_all(&folder)?;
    Ok(counts?)
}

fn total(path: &Path) -> Result<u64, String> {
    let text = fs::read_to_string(path).map_err(|problem| format!("{}: {problem}", path.display()))?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok());
    total.ok_or_else(|| format!("{} has no totals", path.display()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    if args.iter().any(|arg| arg == UNDER_CALLGRIND) {
        measure();
        return Ok(());
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.txt");
    let known = fs::read_to_string(&path).unwrap_or_default();
    let known: BTreeMap<&str, u64> = known
        .lines()
        .filter_map(|line| {
            let (count, case) = line.trim().split_once(' ')?;
            Some((case, count.parse().ok()?))
        })
        .collect();

    let (mut text, mut grown) = (String::new(), Vec::new());
    for ((algorithm, nodes), count) in cases().zip(count()?) {
        let case = format!("{} {nodes}", algorithm.slug());
        let per_node = count as f64 / nodes as f64;
        let before = known.get(case.as_str()).copied();
        let change = before.map(|before| count as f64 / before as f64 - 1.0);
        let shown = change.map_or("new".to_owned(), |change| format!("{:+.1} %", 100.0 * change));
        println!("{count:>12} {per_node:>8.1} per node  {shown:>8}  {case}");
        if change.is_none_or(|change| change > TOLERANCE) {
            grown.push(format!("{case}: {count} instructions, {shown}"));
        }
        writeln!(text, "{count} {case}")?;
    }
    if args.iter().any(|arg| arg == "--update") {
        fs::write(&path, text)?;
    } else if !grown.is_empty() {
        return Err(format!("more instructions than in {}:\n{}", path.display(), grown.join("\n")).into());
    }
    Ok(())
}
