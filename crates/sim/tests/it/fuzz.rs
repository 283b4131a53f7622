//! The parser and the whole loop with random input. `SIM_FUZZ=100000 cargo test -p sim --release fuzz` takes longer.

use proptest::{prelude::*, test_runner::TestRunner};
use sim::{
    Run,
    scenario::{parse, shipped},
};

use crate::support::{build, check, scenario};

fn runner(cases: u32) -> TestRunner {
    let asked = std::env::var("SIM_FUZZ").ok().and_then(|text| text.parse().ok());
    TestRunner::new(ProptestConfig {
        cases: asked.unwrap_or(cases),
        failure_persistence: None,
        ..ProptestConfig::default()
    })
}

/// A shipped scenario with pieces removed, copied or replaced by odd texts.
fn mangled() -> impl Strategy<Value = String> {
    let edits = prop::collection::vec((0..4_u8, any::<u32>(), any::<u32>(), 1..20_usize), 1..6);
    (0..shipped::FILES.len(), edits).prop_map(|(file, edits)| {
        let mut text: Vec<char> = shipped::FILES[file].1.chars().take(1500).collect();
        for (kind, at, other, length) in edits {
            if text.is_empty() {
                break;
            }
            let at = at as usize % text.len();
            let end = (at + length).min(text.len());
            match kind {
                0 => drop(text.drain(at..end)),
                1 => {
                    let piece: Vec<char> = text[at..end].to_vec();
                    let to = other as usize % text.len();
                    text.splice(to..to, piece);
                }
                2 => {
                    let odd = [
                        "-1",
                        "1e400",
                        "{",
                        "]",
                        "NaN",
                        "99999999999999999999",
                        "\u{0}",
                        "*a",
                        "&a",
                        ": ",
                        "\n",
                        "null",
                        "é",
                    ];
                    text.splice(at..at, odd[other as usize % odd.len()].chars());
                }
                _ => text[at] = char::from(b"0123456789-.:{}[],\n "[other as usize % 20]),
            }
        }
        text.into_iter().collect()
    })
}

#[test]
fn fuzz_the_parser_never_panics_and_what_it_accepts_can_be_run() {
    runner(400)
        .run(&mangled(), |text| {
            let scenarios = match parse(&text) {
                Ok(scenarios) => scenarios,
                Err(error) => {
                    prop_assert!(!error.message.is_empty());
                    return Ok(());
                }
            };
            for scenario in scenarios {
                let (model, settings) = build(&scenario);
                if model.vm_count() < 5000 && model.node_count() < 500 {
                    let mut run = Run::new(&model, settings, 0);
                    (0..3).for_each(|_| run.step());
                }
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn fuzz_the_parser_with_texts_of_any_kind() {
    runner(400)
        .run(&"\\PC{0,200}", |text| {
            let _ = parse(&text);
            Ok(())
        })
        .unwrap();
}

#[test]
fn fuzz_the_loop_with_small_random_clusters() {
    runner(64)
        .run(&(scenario(), any::<u64>()), |(scenario, seed)| {
            let (model, settings) = build(&scenario);
            let mut run = Run::new(&model, settings, seed);
            for _ in 0..model.steps() {
                run.step();
            }
            run.observe();
            check(&model, &run, &scenario);
            Ok(())
        })
        .unwrap();
}

/// Holds L6 (unequal round trip).
#[test]
fn a_scenario_survives_being_written_and_read() {
    runner(64)
        .run(&scenario(), |scenario| {
            let yaml = parse(&scenario.to_yaml())
                .map_err(|error| TestCaseError::fail(format!("{error}\n{}", scenario.to_yaml())))?;
            prop_assert_eq!(&yaml[0], &scenario);
            let json = parse(&serde_json::to_string_pretty(&scenario).unwrap()).unwrap();
            prop_assert_eq!(&json[0], &scenario);
            Ok(())
        })
        .unwrap();
}
