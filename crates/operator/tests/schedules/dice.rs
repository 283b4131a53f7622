//! Chance from a seed. What happens to a request follows from what it is and how often it was made, not from the order in
//! which requests happen to arrive: so one fault can be left out without changing all that follow.

use std::time::Duration;

#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// The dice for one question.
    pub(crate) fn of(seed: u64, question: &str, number: u64) -> Dice {
        let mut state = mix(seed) ^ mix(number.wrapping_add(0x51_7c_c1_b7_27_22_0a_95));
        for byte in question.bytes() {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Dice(mix(state))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number from 0 on, below the limit.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// Whether something happens that happens so many times in a thousand.
    pub(crate) fn permille(&mut self, share: u64) -> bool {
        self.below(1000) < share
    }

    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }

    pub(crate) fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from + 1))
    }
}

fn mix(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
