//! Numbers as text and back, exactly: what is read is the float nearest to the text, and what is written is the shortest
//! text that is read as the same float. Short numbers are done by the float's own arithmetic; the others by comparing
//! whole numbers of any length. The tables that would be quicker weigh a tenth of the module that a browser downloads.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "sizes without a sign, exponents of 11 bits, and guesses that are put right"
)]

use std::cmp::Ordering;

use super::Json;
use super::natural::{Natural, compare};
use crate::text::said;

/// Every power of ten up to it is a float.
const LARGEST_EXACT_POWER: u32 = 22;
/// Every whole number up to it is a float.
const LARGEST_EXACT_WHOLE: u64 = 1 << 53;

/// The digits of a number: `digits * 10^exponent`.
#[derive(Default)]
pub(super) struct Parts {
    digits: u64,
    /// All digits again, once they are too many for the field above.
    many: Natural,
    exponent: i32,
}

impl Parts {
    fn push(&mut self, digit: u8) -> bool {
        if self.many.is_zero() {
            if let Some(longer) = self.digits.checked_mul(10).and_then(|digits| digits.checked_add(u64::from(digit))) {
                self.digits = longer;
                return true;
            }
            self.many = Natural::from(self.digits);
        }
        self.many.push(digit)
    }

    /// A digit in front of the point.
    pub fn whole(&mut self, digit: u8) {
        if !self.push(digit) {
            self.exponent += 1;
        }
    }

    /// A digit behind the point.
    pub fn fraction(&mut self, digit: u8) {
        if self.push(digit) {
            self.exponent -= 1;
        }
    }

    pub fn shift(&mut self, exponent: i32) {
        self.exponent = self.exponent.saturating_add(exponent);
    }

    /// `None` where no float is that large.
    pub fn value(self, negative: bool, whole: bool) -> Option<Json> {
        let few = self.many.is_zero();
        if whole && few {
            return Some(Json::Whole(self.digits));
        }
        let value = if few { read(self.digits, self.exponent) } else { nearest(&self.many, self.exponent) };
        value.is_finite().then_some(Json::Number(if negative { -value } else { value }))
    }
}

/// The number with as few digits as tell it from its neighbours, the same ones that Python and JavaScript show, and no
/// exponent.
#[expect(clippy::float_cmp, reason = "equal or not is what is asked")]
pub(crate) fn shown(number: f64) -> String {
    let sign = if number.is_sign_negative() { "-" } else { "" };
    let size = number.abs();
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if size.is_infinite() {
        return said![sign, "inf"];
    }
    // As many tens as the next power of two has: log10(2) is 78,913 / 2^18.
    let twos = (size.to_bits() >> 52) as i32 - 1_022;
    let mut exponent = if size > 0.0 { (twos * 78_913) >> 18 } else { 0 };
    loop {
        let nearest = rounded(size, exponent);
        // Above a power of two there is twice as much room as below it: where the nearest number is not read as it, the
        // next one may be.
        for digits in nearest..nearest + 2 {
            if read(digits, exponent) == size {
                return placed(sign, digits, exponent);
            }
        }
        exponent -= 1;
    }
}

/// The float nearest to `digits * 10^tens`.
fn read(digits: u64, tens: i32) -> f64 {
    if digits <= LARGEST_EXACT_WHOLE && tens.unsigned_abs() <= LARGEST_EXACT_POWER {
        return shifted(digits as f64, tens);
    }
    nearest(&Natural::from(digits), tens)
}

/// The float nearest to `digits * 10^tens`; of two that are equally near, the even one.
fn nearest(digits: &Natural, tens: i32) -> f64 {
    // Further down is nothing, with all the digits that are kept; further up nothing is finite.
    if digits.is_zero() || tens < -1_200 {
        return 0.0;
    }
    let tens = tens.min(400);
    let guess = shifted(digits.rough(), tens);
    // The bits of floats are in the order of the floats. Each step and each limb has moved the guess by one at most.
    let off = u64::from(tens.unsigned_abs() / LARGEST_EXACT_POWER) + digits.limbs() as u64 + 2;
    let infinite = f64::INFINITY.to_bits();
    let bits = guess.to_bits();
    let from = if bits < infinite { bits.saturating_sub(off) } else { 0 };
    let last = infinite.min(bits + off);
    f64::from_bits(first(from, last, |bits| {
        let (mantissa, exponent) = mantissa_and_exponent(bits);
        // Halfway to the next float.
        match compare(digits, tens, 2 * mantissa + 1, exponent - 1) {
            Ordering::Less => true,
            Ordering::Equal => mantissa % 2 == 0,
            Ordering::Greater => false,
        }
    }))
}

/// The whole number nearest to `size / 10^tens`; of two that are equally near, the even one.
fn rounded(size: f64, tens: i32) -> u64 {
    let guess = shifted(size, -tens);
    // One rounding of 15 digits does not reach the next whole number.
    if guess < 1e15 && tens.unsigned_abs() <= LARGEST_EXACT_POWER {
        return guess.round_ties_even() as u64;
    }
    // Each step has moved the guess by one part in 2^53 at most.
    let off = (guess * 1e-13) as u64 + 1;
    let (from, last) = ((guess as u64).saturating_sub(off), guess as u64 + off);
    let (mantissa, exponent) = mantissa_and_exponent(size.to_bits());
    first(from, last, |digits| {
        // Halfway to the next whole number.
        match compare(&Natural::from(2 * digits + 1), tens, mantissa, exponent + 1) {
            Ordering::Greater => true,
            Ordering::Equal => digits % 2 == 0,
            Ordering::Less => false,
        }
    })
}

/// The digits with their zeros or their point.
fn placed(sign: &str, digits: u64, exponent: i32) -> String {
    let text = said![digits];
    if exponent >= 0 {
        return said![sign, text, "0".repeat(exponent.unsigned_abs() as usize)];
    }
    let places = exponent.unsigned_abs() as usize;
    let padded = said!["0".repeat((places + 1).saturating_sub(text.len())), text];
    let (whole, fraction) = padded.split_at(padded.len() - places);
    said![sign, whole, ".", fraction]
}

/// The first of these that is high enough, which all after it are too; the last is taken to be.
fn first(mut from: u64, mut last: u64, is_enough: impl Fn(u64) -> bool) -> u64 {
    while from < last {
        let middle = from + (last - from) / 2;
        (from, last) = if is_enough(middle) { (from, middle) } else { (middle + 1, last) };
    }
    from
}

/// The float with these bits, which has a sign of plus and is finite, as `.0 * 2^.1`.
fn mantissa_and_exponent(bits: u64) -> (u64, i32) {
    let exponent = (bits >> 52) as i32;
    let hidden = if exponent > 0 { 1 << 52 } else { 0 };
    (bits % (1 << 52) + hidden, exponent.max(1) - 1_075)
}

/// `number * 10^exponent`, rounded once for each step of 10^22: once, and so exactly, where there is one step and the
/// number is exact.
fn shifted(mut number: f64, exponent: i32) -> f64 {
    let mut left = exponent.unsigned_abs();
    while left > 0 {
        let step = left.min(LARGEST_EXACT_POWER);
        let power = (0..step).fold(1.0, |power: f64, _| power * 10.0);
        number = if exponent < 0 { number / power } else { number * power };
        left -= step;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::{Json, shown};

    /// The decimal digits of `5^power`.
    fn power_of_five(power: u32) -> String {
        let mut digits = vec![1_u8];
        for _ in 0..power {
            let mut carry = 0;
            for digit in &mut digits {
                carry += *digit * 5;
                *digit = carry % 10;
                carry /= 10;
            }
            digits.extend((carry > 0).then_some(carry));
        }
        digits.iter().rev().map(|digit| char::from(b'0' + digit)).collect()
    }

    /// Half of the smallest float above zero has 752 digits: what stands behind more of them than are kept still counts.
    #[test]
    fn a_digit_behind_all_that_are_kept_decides_between_two_floats() {
        let half = power_of_five(1_075);
        let noughts = "0".repeat(100);
        let cases = [
            (format!("{half}e-1075"), 0.0),
            (format!("{half}{noughts}e-1175"), 0.0),
            (format!("{half}{noughts}1e-1176"), 5e-324),
            (format!("0.{}{half}{noughts}0001", "0".repeat(1_075 - half.len())), 5e-324),
            (format!("{}{noughts}", &half[..half.len() - 1]), f64::INFINITY),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse(), Ok(expected), "{text}");
            match Json::parse(&text) {
                Ok(read) => assert_eq!(read, Json::Number(expected), "{text}"),
                Err(_) => assert!(expected.is_infinite(), "{text}"),
            }
        }
    }

    #[test]
    fn a_number_is_shown_as_short_as_it_can_be() {
        let numbers = [
            0.0,
            -0.0,
            1.0,
            -3.0,
            0.1,
            0.25,
            1.5,
            123.456,
            1e7,
            1e15,
            9e15,
            1e16,
            1e21,
            1e22,
            1e23,
            1e-7,
            0.3,
            0.1 + 0.2,
            100.0,
            7_776_000.5,
            86_400.000_001,
            1e-9,
            1_234_567_890.123,
            18_446_744_073_709_551_616.0,
            5e-324,
            f64::MIN_POSITIVE,
            f64::MAX,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ];
        for number in numbers {
            assert_eq!(shown(number), number.to_string());
        }
    }

    #[test]
    fn a_power_of_two_has_more_room_above_it() {
        for exponent in 1..2_047 {
            let power = f64::from_bits(exponent << 52);
            let text = shown(power);
            assert_eq!((text.parse(), text.len()), (Ok(power), power.to_string().len()), "{text}");
        }
    }

    #[test]
    fn of_two_that_are_equally_near_the_even_one_is_shown() {
        let two_to_the_50th = 1_125_899_906_842_624.0;
        assert_eq!(shown(two_to_the_50th + 0.25), "1125899906842624.2");
        assert_eq!(shown(two_to_the_50th + 0.75), "1125899906842624.8");
    }
}
