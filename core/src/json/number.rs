//! Numbers as text and back. Whole ones are exact; of the rest, what has 15 digits and a modest exponent is exact too,
//! which every setting and every header is. The tables and the wide arithmetic that are exact for every float weigh a
//! tenth of the module that a browser downloads.

use super::Json;
use crate::text::said;

/// The digits of a number: `digits * 10^exponent`.
#[derive(Default)]
pub(super) struct Parts {
    digits: u64,
    exponent: i32,
}

impl Parts {
    fn push(&mut self, digit: u8) -> bool {
        let longer = self.digits.checked_mul(10).and_then(|digits| digits.checked_add(u64::from(digit)));
        self.digits = longer.unwrap_or(self.digits);
        longer.is_some()
    }

    /// A digit in front of the point.
    pub fn whole(&mut self, digit: u8) {
        if self.exponent > 0 || !self.push(digit) {
            self.exponent += 1;
        }
    }

    /// A digit behind the point.
    pub fn fraction(&mut self, digit: u8) {
        if self.exponent <= 0 && self.push(digit) {
            self.exponent -= 1;
        }
    }

    pub fn shift(&mut self, exponent: i32) {
        self.exponent = self.exponent.saturating_add(exponent);
    }

    /// `None` where no float is that large.
    #[expect(clippy::cast_precision_loss, reason = "a float is what is asked for")]
    pub fn value(self, negative: bool, whole: bool) -> Option<Json> {
        if whole && self.exponent == 0 {
            return Some(Json::Whole(self.digits));
        }
        let value = if self.digits == 0 { 0.0 } else { shifted(self.digits as f64, self.exponent) };
        value.is_finite().then_some(Json::Number(if negative { -value } else { value }))
    }
}

/// `number * 10^exponent`, rounded once where the power is exact: up to 10^22.
fn shifted(number: f64, exponent: i32) -> f64 {
    let power = (0..exponent.unsigned_abs().min(400)).fold(1.0, |power: f64, _| power * 10.0);
    if exponent < 0 { number / power } else { number * power }
}

/// The number with as few digits as tell it from its neighbours, and no exponent.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "17 digits and no sign; equal or not is what is asked"
)]
pub(crate) fn shown(number: f64) -> String {
    let sign = if number.is_sign_negative() { "-" } else { "" };
    let size = number.abs();
    if number.is_nan() || size.is_infinite() {
        return if number.is_nan() { "NaN".to_owned() } else { said![sign, "inf"] };
    }
    let mut magnitude = 0;
    while shifted(1.0, magnitude + 1) <= size {
        magnitude += 1;
    }
    while magnitude > -400 && shifted(1.0, magnitude) > size {
        magnitude -= 1;
    }
    let (mut digits, mut exponent) = (0.0, 0);
    for length in 0..17 {
        exponent = magnitude - length;
        digits = shifted(size, -exponent).round_ties_even();
        if shifted(digits, exponent) == size {
            break;
        }
    }
    placed(sign, digits as u64, exponent)
}

/// The digits with their zeros or their point.
fn placed(sign: &str, digits: u64, exponent: i32) -> String {
    let places = usize::try_from(-exponent).unwrap_or(0);
    let zeros = if digits == 0 { 0 } else { usize::try_from(exponent).unwrap_or(0) };
    let text = said![digits];
    if places == 0 || digits == 0 {
        return said![sign, text, "0".repeat(zeros)];
    }
    let padded = said!["0".repeat((places + 1).saturating_sub(text.len())), text];
    let (whole, fraction) = padded.split_at(padded.len() - places);
    said![sign, whole, ".", fraction]
}

#[cfg(test)]
mod tests {
    use super::shown;

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
            1e-7,
            0.3,
            0.1 + 0.2,
            100.0,
            7_776_000.5,
            86_400.000_001,
            1e-9,
            1_234_567_890.123,
            18_446_744_073_709_551_616.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ];
        for number in numbers {
            assert_eq!(shown(number), number.to_string());
        }
        // Too small to be told apart, and too long to be right in every digit: shown all the same.
        assert!(shown(5e-324).starts_with("0.00000"));
        assert!(shown(f64::MAX).starts_with("17976931348623"), "{}", shown(f64::MAX));
    }
}
