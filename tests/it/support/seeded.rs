//! Chance that can be repeated: numbers, and mutations of bytes and JSON, all made from one seed.

use serde_json::{Map, Value, json};

/// SplitMix64, as at <https://prng.di.unimi.it/splitmix64.c>.
pub(crate) struct Seeded(u64);

impl Seeded {
    pub(crate) fn new(seed: u64) -> Self {
        Seeded(seed)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one, which is not zero.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).expect("a length");
        usize::try_from(self.number() % end).expect("below a length")
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Any character of Unicode, controls and unassigned ones included.
    fn character(&mut self) -> char {
        loop {
            let number = u32::try_from(self.below(0x11_0000)).expect("below the last one");
            if let Some(character) = char::from_u32(number) {
                return character;
            }
        }
    }

    fn text(&mut self) -> String {
        let length = self.below(12);
        (0..length).map(|_| self.character()).collect()
    }

    /// One to four changes of bytes: flipped, cut, doubled, put in, or taken from another sample.
    pub(crate) fn mutate_bytes(&mut self, sample: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = sample.to_vec();
        for _ in 0..=self.below(4) {
            self.change(&mut bytes, other);
        }
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        const TOKENS: [&[u8]; 12] = [
            b"\"",
            b"{",
            b"[",
            b"\\u0000",
            b"\xff",
            b"\n\n",
            b"-",
            b"1e999",
            b"null",
            b"```",
            b"data: ",
            "\u{202e}\u{1f3f3}\u{fe0f}\u{200d}".as_bytes(),
        ];
        let at = self.below(bytes.len() + 1);
        let end = (at + 1 + self.below(16)).min(bytes.len());
        match self.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            1 => bytes.truncate(at),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let again = bytes[at..end].repeat(1 + self.below(64));
                bytes.splice(at..at, again);
            }
            4 if !other.is_empty() => {
                let from = self.below(other.len());
                let piece = &other[from..(from + 1 + self.below(64)).min(other.len())];
                bytes.splice(at..end, piece.iter().copied());
            }
            _ => drop(bytes.splice(at..at, self.pick(&TOKENS).iter().copied())),
        }
    }

    /// One to three changes anywhere in the value; a key of `kept` stays at the top.
    pub(crate) fn mutate_json(&mut self, value: &mut Value, kept: &str) {
        for _ in 0..=self.below(3) {
            let mut paths = Vec::new();
            collect(value, "", &mut paths);
            paths.retain(|path| path != &format!("/{kept}"));
            if paths.is_empty() {
                return;
            }
            let path = self.pick(&paths).clone();
            self.change_at(value, &path);
        }
    }

    /// Another value in its place, the field gone, or a further field beside it.
    fn change_at(&mut self, root: &mut Value, path: &str) {
        let (parent, key) = path.rsplit_once('/').expect("below the root");
        let key = key.replace("~1", "/").replace("~0", "~");
        let other = self.odd_value(root);
        match root.pointer_mut(parent) {
            Some(Value::Object(fields)) => match self.below(4) {
                0 => drop(fields.remove(&key)),
                1 => drop(fields.insert(self.text(), other)),
                _ => drop(fields.insert(key, other)),
            },
            Some(Value::Array(items)) => match self.below(4) {
                0 => items.clear(),
                1 => items.extend(std::iter::repeat_n(other, self.below(200))),
                _ => {
                    let at = self.below(items.len().max(1)).min(items.len());
                    items.insert(at, other);
                }
            },
            _ => {}
        }
    }

    /// A value of any type: extreme, nested, long, or found elsewhere in the same value.
    fn odd_value(&mut self, root: &Value) -> Value {
        match self.below(14) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 => json!(i64::MIN),
            3 => json!(u64::MAX),
            4 => json!(-1),
            5 => json!(1e300),
            6 => json!(self.number()),
            7 => json!(self.text()),
            8 => json!(self.text().repeat(1 + self.below(300))),
            9 => nested(1 + self.below(100)),
            10 => Value::Object(Map::from_iter([(self.text(), json!({}))])),
            11 => json!([]),
            12 => json!(""),
            _ => {
                let mut paths = Vec::new();
                collect(root, "", &mut paths);
                let from = self.pick(&paths).clone();
                root.pointer(&from).cloned().unwrap_or_default()
            }
        }
    }
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, level| {
        if level % 2 == 0 {
            json!([inner])
        } else {
            json!({ "text": inner })
        }
    })
}

/// The JSON pointers of everything in the value. Many equal items of a list count by the first ones.
fn collect(value: &Value, path: &str, into: &mut Vec<String>) {
    const MOST: usize = 8;
    let mut visit = |key: &str, inner: &Value| {
        let key = key.replace('~', "~0").replace('/', "~1");
        let below = format!("{path}/{key}");
        into.push(below.clone());
        collect(inner, &below, into);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, inner)| visit(key, inner)),
        Value::Array(items) => {
            for (at, inner) in items.iter().enumerate().take(MOST) {
                visit(&at.to_string(), inner);
            }
        }
        _ => {}
    }
}
