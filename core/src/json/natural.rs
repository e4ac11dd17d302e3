//! Whole numbers of any length: as much of them as it takes to compare a decimal number with a float.

#![expect(clippy::cast_possible_truncation, reason = "a carry is cut into its limb and the rest")]

use std::cmp::Ordering;

/// A number of so many limbs has more than the 768 digits that decide what float is nearest: what follows only matters by
/// being zero or not.
const MOST_LIMBS: usize = 84;

/// A whole number, in limbs of 32 bits, the smallest first and the largest not zero.
#[derive(Clone, Default)]
pub(super) struct Natural(Vec<u32>);

impl Natural {
    pub fn from(number: u64) -> Self {
        let mut limbs = Self::default();
        limbs.times(1, (number >> 32) as u32);
        limbs.times_power_of(2, 32);
        limbs.times(1, number as u32);
        limbs
    }

    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    pub fn limbs(&self) -> usize {
        self.0.len()
    }

    /// One more decimal digit; where there are enough, only a trace of it, and `false`.
    pub fn push(&mut self, digit: u8) -> bool {
        let room = self.0.len() < MOST_LIMBS;
        if room {
            self.times(10, u32::from(digit));
        } else {
            // An odd number of that length is between two numbers that would be halfway from float to float.
            self.0[0] |= u32::from(digit > 0);
        }
        room
    }

    fn times(&mut self, factor: u32, plus: u32) {
        let mut carry = u64::from(plus);
        for limb in &mut self.0 {
            carry += u64::from(*limb) * u64::from(factor);
            *limb = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    fn times_power_of(&mut self, base: u32, mut power: u32) {
        while power > 0 {
            // The largest powers in 32 bits.
            let step = power.min(if base == 2 { 31 } else { 13 });
            self.times(base.pow(step), 0);
            power -= step;
        }
    }

    /// Rounded once for each limb.
    pub fn rough(&self) -> f64 {
        self.0.iter().rev().fold(0.0, |number, limb| number * 4_294_967_296.0 + f64::from(*limb))
    }
}

/// `digits * 10^tens` against `number * 2^twos`; neither is zero.
pub(super) fn compare(digits: &Natural, tens: i32, number: u64, twos: i32) -> Ordering {
    let (mut left, mut right) = (digits.clone(), Natural::from(number));
    // What would divide one side multiplies the other. A ten is a five and a two.
    (if tens > 0 { &mut left } else { &mut right }).times_power_of(5, tens.unsigned_abs());
    let twos = tens - twos;
    (if twos > 0 { &mut left } else { &mut right }).times_power_of(2, twos.unsigned_abs());
    left.0.len().cmp(&right.0.len()).then_with(|| left.0.iter().rev().cmp(right.0.iter().rev()))
}
