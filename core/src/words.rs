//! Tables of words, packed into one text when this is compiled: a pointer and a length for each word are half of what a
//! table weighs in the module that a browser downloads.

/// Words, each with a number below 128: the number, the length, the word, one entry after the other.
#[derive(Clone, Copy)]
pub(crate) struct Words(&'static str);

impl Words {
    /// What [`packed`] makes.
    pub const fn of(packed: &'static [u8]) -> Words {
        match std::str::from_utf8(packed) {
            Ok(text) => Words(text),
            Err(_) => panic!("numbers and lengths are below 128"),
        }
    }

    /// Every number and its word, in the order of the table.
    pub fn iter(self) -> impl Iterator<Item = (u8, &'static str)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let [number, length, ..] = *rest.as_bytes() else { return None };
            let (word, after) = rest[2..].split_at(length.into());
            rest = after;
            Some((number, word))
        })
    }
}

/// A table while it is packed; large enough for every table.
pub(crate) struct Packer {
    bytes: [u8; 8192],
    pub len: usize,
}

impl Packer {
    pub const fn new() -> Packer {
        Packer { bytes: [0; 8192], len: 0 }
    }

    /// One entry more.
    #[expect(clippy::cast_possible_truncation, reason = "both are below 128")]
    pub const fn word(mut self, number: usize, word: &str) -> Packer {
        let word = word.as_bytes();
        assert!(number < 128 && word.len() < 128, "what `Words` cannot hold");
        self.bytes[self.len] = number as u8;
        self.bytes[self.len + 1] = word.len() as u8;
        let mut at = 0;
        while at < word.len() {
            self.bytes[self.len + 2 + at] = word[at];
            at += 1;
        }
        self.len += 2 + word.len();
        self
    }

    /// Entries of one number.
    pub const fn words(mut self, number: usize, words: &[&str]) -> Packer {
        let mut at = 0;
        while at < words.len() {
            self = self.word(number, words[at]);
            at += 1;
        }
        self
    }

    /// What there is, cut to its length.
    pub const fn cut<const N: usize>(&self) -> [u8; N] {
        let mut out = [0; N];
        let mut at = 0;
        while at < N {
            out[at] = self.bytes[at];
            at += 1;
        }
        out
    }
}

/// The [`Words`] of a [`Packer`], of which no more than its entries are kept.
macro_rules! packed {
    ($packer:expr) => {{
        const PACKER: $crate::words::Packer = $packer;
        const BYTES: [u8; PACKER.len] = PACKER.cut();
        $crate::words::Words::of(&BYTES)
    }};
}
pub(crate) use packed;

#[cfg(test)]
mod tests {
    use super::{Packer, Words};

    #[test]
    fn words_come_out_as_they_went_in() {
        const WORDS: Words = packed!(Packer::new().word(0, "").words(127, &["overloaded", "过载"]).word(3, "x"));
        let all: Vec<_> = WORDS.iter().collect();
        assert_eq!(all, [(0, ""), (127, "overloaded"), (127, "过载"), (3, "x")]);
    }
}
