//! Random numbers that are the same on every machine (SplitMix64).
//! A draw for one object, such as the noise of VM 7 at step 12, has a stream that is keyed by the object. It does not
//! depend on earlier draws.

/// The purpose of a keyed stream. The numbers are part of the meaning of a seed: never reuse one.
#[derive(Debug, Clone, Copy)]
#[repr(u64)]
pub(crate) enum Purpose {
    Model = 1,
    Noise = 2,
    Task = 3,
    Decision = 4,
    Placement = 5,
    Failure = 6,
    Order = 7,
    Search = 8,
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of random numbers: the state advances by a constant, and each number is a mix of the state.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(mix(seed ^ GOLDEN))
    }

    /// The stream of an object. It depends on the seed, the purpose and the keys alone.
    pub(crate) fn keyed(seed: u64, purpose: Purpose, first: u64, second: u64) -> Self {
        let mut state = mix(seed ^ GOLDEN);
        for key in [purpose as u64, first, second] {
            state = mix(state.wrapping_add(GOLDEN) ^ mix(key.wrapping_add(GOLDEN)));
        }
        Self(state)
    }

    /// The stream of a named thing and its number. For tests that take faults from a seed.
    pub fn named(seed: u64, name: &str, number: u64) -> Self {
        let mut state = mix(seed) ^ mix(number.wrapping_add(0x517c_c1b7_2722_0a95));
        for byte in name.bytes() {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Self(mix(state))
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Uniform in [0, 1), a multiple of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Uniform in [low, high); `low` where the interval is empty.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        let value = low + (high - low) * self.unit();
        if value < low { low } else { value }
    }

    /// Uniform in 0..count, and 0 for an empty range. It takes one draw; the bias is below count / 2⁶⁴.
    pub fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.bits()) * count as u128) >> 64) as usize
    }

    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.unit())).sqrt();
        mean + deviation * radius * libm::cos(std::f64::consts::TAU * self.unit())
    }

    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published first outputs of SplitMix64 for seed 0: the state before the first draw is 0.
    #[test]
    fn the_stream_is_splitmix64() {
        let mut stream = Rng(0);
        assert_eq!(stream.bits(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(stream.bits(), 0x6e78_9e6a_a1b9_65f4);
        assert_eq!(stream.bits(), 0x06c4_5d18_8009_454f);
    }

    #[test]
    fn a_keyed_draw_depends_on_each_key_and_on_nothing_else() {
        let draw = |seed, purpose, first, second| Rng::keyed(seed, purpose, first, second).bits();
        let base = draw(1, Purpose::Noise, 7, 12);
        assert_eq!(base, draw(1, Purpose::Noise, 7, 12));
        for other in [
            draw(2, Purpose::Noise, 7, 12),
            draw(1, Purpose::Task, 7, 12),
            draw(1, Purpose::Noise, 12, 7),
            draw(1, Purpose::Noise, 7, 13),
        ] {
            assert_ne!(base, other);
        }
    }

    /// These numbers keep what a seed of the operator's schedules means.
    #[test]
    fn a_named_stream_depends_on_seed_name_and_number_and_stays_as_it_is() {
        let draw = |seed, name, number| Rng::named(seed, name, number).bits();
        let base = draw(7, "mco", 0);
        assert!([draw(8, "mco", 0), draw(7, "mcp", 0), draw(7, "mco", 1)].iter().all(|other| *other != base));
        assert_eq!(base, 0x0d0f_f200_59ac_34e3);
    }

    #[test]
    fn draws_stay_in_their_range_and_reach_all_of_it() {
        let mut rng = Rng::new(3);
        let mut seen = [0_u32; 7];
        for _ in 0..7000 {
            seen[rng.below(7)] += 1;
            let unit = rng.unit();
            assert!((0.0..1.0).contains(&unit));
            assert!((2.0..3.0).contains(&rng.between(2.0, 3.0)));
        }
        assert!(seen.iter().all(|&count| (800..1200).contains(&count)), "{seen:?}");
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.between(5.0, 5.0), 5.0);
    }

    #[test]
    fn distributions_have_their_mean() {
        let mut rng = Rng::new(4);
        let mean = |draw: &mut dyn FnMut() -> f64| (0..20_000).map(|_| draw()).sum::<f64>() / 20_000.0;
        assert!((mean(&mut || rng.normal(3.0, 0.5)) - 3.0).abs() < 0.02);
        assert!((mean(&mut || rng.exponential(2.0)) - 2.0).abs() < 0.06);
    }
}
