//! The pressure models, with the reference's corner values.

use balance::{Capacity, PressureModel, Signals};
use proptest::prelude::*;

use PressureModel::{Continuous, Reference};

fn close(got: f64, expected: f64) -> bool {
    (got - expected).abs() < 1e-12
}

#[test]
fn the_reference_has_its_corner_values() {
    let corners = [
        (0.0, 0.0),
        (0.3, 0.021),
        (0.6999999, 0.048999993),
        (0.7, 0.0),
        (0.8, 0.1),
        (0.9, 0.2),
        (0.95, 0.35),
        (1.0, 0.8),
    ];
    for (usage, expected) in corners {
        for got in [Reference.cpu(usage), Reference.memory(usage)] {
            assert!(close(got, expected), "pressure at {usage} is {got}");
        }
    }
    assert_eq!(Reference.cpu(0.7), 0.0, "falls to nothing at 70 %");
    for (demand, expected) in [(1.2, 0.9), (1.4, 1.0), (7.0, 1.0)] {
        assert!(close(Reference.cpu(demand), expected), "{}", Reference.cpu(demand));
        assert!(close(Reference.memory(demand), 0.8), "memory beyond its size counts as full");
    }
}

#[test]
fn the_continuous_one_differs_only_between_70_and_90_percent() {
    assert!(close(Continuous.cpu(0.7), 0.049));
    assert!(close(Continuous.cpu(0.8), 0.1245));
    for usage in [0.0, 0.3, 0.69, 0.9, 0.95, 1.0, 1.2, 3.0] {
        assert!(close(Continuous.cpu(usage), Reference.cpu(usage)), "at {usage}");
    }
}

proptest! {
    #[test]
    fn more_load_never_means_less_pressure_in_the_continuous_model(a in 0.0..2.0, b in 0.0..2.0) {
        let (less, more) = if a < b { (a, b) } else { (b, a) };
        prop_assert!(Continuous.cpu(less) <= Continuous.cpu(more));
        prop_assert!(Continuous.memory(less) <= Continuous.memory(more));
        // A little more load means only a little more pressure.
        prop_assert!(Continuous.cpu(more) - Continuous.cpu(less) <= 12.1 * (more - less));
    }

    #[test]
    fn signals_of_any_demand_are_in_range_and_the_same_in_columns(demands in prop::collection::vec((0.0..20.0, 0.0..20.0), 1..50)) {
        let (cpu, memory): (Vec<f64>, Vec<f64>) = demands.iter().copied().unzip();
        for model in PressureModel::ALL {
            let mut filled = Signals::idle(3);
            model.fill(&cpu, &memory, &mut filled);
            prop_assert_eq!(filled.check(), Ok(()));
            let one_by_one: Signals = demands.iter().map(|&(cpu, memory)| model.signals(cpu, memory)).collect();
            prop_assert_eq!(filled, one_by_one);
        }
    }
}

#[test]
fn the_same_load_weighs_more_on_a_smaller_node() {
    let gib = 1024.0 * 1024.0 * 1024.0;
    assert_eq!(Capacity::REFERENCE.demand(16.0, 32.0 * gib), [0.5, 0.25]);
    let small = Capacity { cpu_cores: 16.0, memory_bytes: 64.0 * gib };
    assert_eq!(small.demand(16.0, 32.0 * gib), [1.0, 0.5]);
    let none = Capacity { cpu_cores: 0.0, memory_bytes: 0.0 };
    assert_eq!(none.demand(1.0, 1.0), [1.0, 1.0], "a node of no size is full");
}

#[test]
fn a_value_out_of_range_is_named() {
    let mut signals = Signals::idle(3);
    assert_eq!(signals.check(), Ok(()));
    for wrong in [f64::NAN, -1e-9, 1.1] {
        signals.memory_usage[2] = wrong;
        let text = signals.check().unwrap_err().to_string();
        assert_eq!(text, format!("memory_usage of node 2 is {wrong}: a number from 0 to 1 was expected"));
    }
}

#[test]
fn models_are_found_by_name() {
    assert_eq!("Continuous".parse(), Ok(Continuous));
    assert_eq!("reference".parse(), Ok(Reference));
    let error = "continous".parse::<PressureModel>().unwrap_err().to_string();
    assert!(error.contains("did you mean \"continuous\"?"), "{error}");
}
