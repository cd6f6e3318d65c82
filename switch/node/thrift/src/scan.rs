//! Where a call ends, found while its bytes come: binary Thrift announces no length. Nothing is kept here but the place reached, and a few
//! bytes that do not tell what they are without the next ones.

use std::fmt;

/// Longest call in bytes: a program of this size can be loaded.
pub const LONGEST: usize = 64 << 20;
/// Values of one call. Each of them, which may be one byte on the wire, takes tens of bytes of memory.
const MOST_VALUES: usize = 64 << 10;
/// Values within values.
const DEEPEST: usize = 64;

/// Why the bytes are no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// Not strict binary Thrift, or a type that no call has.
    NoCall,
    /// Longer than [`LONGEST`].
    TooLong,
    /// Too many values, or too deep.
    TooMany,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::NoCall => f.write_str("what came is no call of binary Thrift"),
            Malformed::TooLong => write!(f, "a call of more than {LONGEST} bytes"),
            Malformed::TooMany => write!(f, "a call of more than {MOST_VALUES} values, or of values {DEEPEST} deep"),
        }
    }
}

impl std::error::Error for Malformed {}

#[derive(Debug, Clone, Copy)]
enum Step {
    Version,
    Skip(usize),
    /// A length, and so many bytes.
    Text,
    Fields,
    List,
    Items(u8, usize),
    Map,
    Pairs(u8, u8, usize),
}

/// The scan of one call.
#[derive(Debug)]
pub struct Scan {
    steps: Vec<Step>,
    /// Bytes that have been looked at.
    at: usize,
    /// Those after them that have come.
    begun: Vec<u8>,
    values: usize,
}

impl Default for Scan {
    fn default() -> Self {
        // Version and type, name, sequence number, arguments: the next one is the last.
        Scan { steps: vec![Step::Fields, Step::Skip(4), Step::Text, Step::Version], at: 0, begun: Vec::new(), values: 0 }
    }
}

const VERSION_1: u32 = 0x8001_0000;

fn number(bytes: [u8; 4]) -> Result<usize, Malformed> {
    // A length below 0 is none.
    usize::try_from(i32::from_be_bytes(bytes)).map_err(|_| Malformed::NoCall)
}

impl Scan {
    /// Where the call ends in what has come now; `None` until it is whole.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn end(&mut self, came: &[u8]) -> Result<Option<usize>, Malformed> {
        let before = self.begun.len();
        let joined = std::mem::take(&mut self.begun);
        let joined = if before == 0 { joined } else { [&joined, came].concat() };
        let mut rest = if before == 0 { came } else { &joined[..] };
        let length = rest.len();
        let over = self.walk(&mut rest)?;
        if !over {
            self.begun = rest.to_vec();
        }
        Ok(over.then(|| length - rest.len() - before))
    }

    /// Looks at what it can; whether the call is over.
    fn walk(&mut self, bytes: &mut &[u8]) -> Result<bool, Malformed> {
        while let Some(step) = self.steps.pop() {
            let rest = *bytes;
            let taken = match (step, rest) {
                (Step::Skip(length), _) if rest.len() < length => {
                    self.steps.push(Step::Skip(length - rest.len()));
                    self.at += rest.len();
                    *bytes = &[];
                    return Ok(false);
                }
                (Step::Skip(length), _) => length,
                (Step::Version, &[a, b, c, d, ..]) => {
                    if u32::from_be_bytes([a, b, c, d]) & 0xffff_0000 != VERSION_1 {
                        return Err(Malformed::NoCall);
                    }
                    4
                }
                (Step::Text, &[a, b, c, d, ..]) => {
                    let length = number([a, b, c, d])?;
                    self.steps.push(Step::Skip(length));
                    if self.at + length > LONGEST {
                        return Err(Malformed::TooLong);
                    }
                    4
                }
                (Step::Fields, &[0, ..]) => 1,
                (Step::Fields, &[kind, _, _, ..]) => {
                    self.steps.push(Step::Fields);
                    self.value(kind)?;
                    3
                }
                (Step::List, &[kind, a, b, c, d, ..]) => {
                    self.steps.push(Step::Items(kind, number([a, b, c, d])?));
                    5
                }
                (Step::Map, &[key, value, a, b, c, d, ..]) => {
                    self.steps.push(Step::Pairs(key, value, number([a, b, c, d])?));
                    6
                }
                (Step::Items(_, 0) | Step::Pairs(_, _, 0), _) => 0,
                (Step::Items(kind, left), _) => {
                    self.steps.push(Step::Items(kind, left - 1));
                    self.value(kind)?;
                    0
                }
                (Step::Pairs(key, value, left), _) => {
                    self.steps.push(Step::Pairs(key, value, left - 1));
                    self.value(value)?;
                    self.value(key)?;
                    0
                }
                (step, _) => {
                    self.steps.push(step);
                    return if self.at > LONGEST { Err(Malformed::TooLong) } else { Ok(false) };
                }
            };
            self.at += taken;
            *bytes = &rest[taken..];
        }
        Ok(true)
    }

    /// A value of a type comes next.
    fn value(&mut self, kind: u8) -> Result<(), Malformed> {
        self.values += 1;
        if self.values > MOST_VALUES || self.steps.len() > DEEPEST {
            return Err(Malformed::TooMany);
        }
        self.steps.push(match kind {
            2 | 3 => Step::Skip(1),
            6 => Step::Skip(2),
            8 => Step::Skip(4),
            4 | 10 => Step::Skip(8),
            11 => Step::Text,
            12 => Step::Fields,
            13 => Step::Map,
            14 | 15 => Step::List,
            _ => return Err(Malformed::NoCall),
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use thrift::protocol::{TBinaryOutputProtocol, TMessageIdentifier, TMessageType, TOutputProtocol};

    use super::*;
    use crate::value::{write_fields, Fields, Kind, Value};

    fn call(name: &str, fields: &Fields) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut output = TBinaryOutputProtocol::new(&mut bytes, true);
        output.write_message_begin(&TMessageIdentifier::new(name, TMessageType::Call, 7)).expect("written");
        write_fields(&mut output, fields).expect("written");
        output.write_message_end().expect("written");
        bytes
    }

    fn values() -> impl Strategy<Value = Value> {
        let plain = prop_oneof![
            any::<bool>().prop_map(Value::Bool),
            any::<i8>().prop_map(Value::Byte),
            any::<i16>().prop_map(Value::I16),
            any::<i32>().prop_map(Value::I32),
            any::<i64>().prop_map(Value::I64),
            any::<f64>().prop_map(Value::Double),
            proptest::collection::vec(any::<u8>(), 0..20).prop_map(Value::Bytes),
        ];
        plain.prop_recursive(3, 24, 4, |inner| {
            let text = proptest::collection::vec(any::<u8>(), 0..5).prop_map(Value::Bytes);
            prop_oneof![
                proptest::collection::vec((any::<i16>(), inner), 0..4).prop_map(|fields| Value::Struct(Fields::new(fields))),
                proptest::collection::vec(any::<i32>().prop_map(Value::I32), 0..4).prop_map(|items| Value::List(Kind::I32, items)),
                proptest::collection::vec((text.clone(), text), 0..4).prop_map(Value::Map),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_end_is_found_however_the_bytes_come(
            name in "[a-z:_]{0,30}",
            fields in proptest::collection::vec((any::<i16>(), values()), 0..5),
            more in proptest::collection::vec(any::<u8>(), 0..9),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let whole = call(&name, &Fields::new(fields));
            let mut scan = Scan::default();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len())).collect();
            cuts.sort_unstable();
            let mut from = 0;
            for cut in cuts {
                prop_assert_eq!(scan.end(&whole[from..cut]), Ok(None));
                from = cut;
            }
            let end = whole.len() - from;
            prop_assert_eq!(scan.end(&[&whole[from..], &more].concat()), Ok(Some(end)));
        }

        #[test]
        fn any_bytes_are_looked_at(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut prefixed = vec![0x80, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
            prefixed.extend(&bytes);
            for call in [&bytes, &prefixed] {
                if let Ok(Some(end)) = Scan::default().end(call) {
                    prop_assert!(end <= call.len());
                }
            }
        }
    }

    #[test]
    fn what_is_no_call_or_too_much_is_refused() {
        let head = |arguments: &[u8]| [&[0x80, 1, 0, 1, 0, 0, 0, 1, b'm', 0, 0, 0, 7], arguments].concat();
        let list_of = |kind: u8, items: i32| head(&[&[15, 0, 1, kind], &items.to_be_bytes()[..]].concat());
        assert_eq!(Scan::default().end(b"GET / HTTP/1.1"), Err(Malformed::NoCall));
        assert_eq!(Scan::default().end(&head(&[11, 0, 1, 0xff, 0xff, 0xff, 0xff])), Err(Malformed::NoCall), "a negative length");
        assert_eq!(Scan::default().end(&head(&[16, 0, 1])), Err(Malformed::NoCall), "a type that no call has");
        assert_eq!(Scan::default().end(&head(&[11, 0, 1, 0x7f, 0, 0, 0])), Err(Malformed::TooLong), "what is announced counts");
        let bools = [list_of(2, i32::MAX), vec![0; MOST_VALUES]].concat();
        assert_eq!(Scan::default().end(&bools), Err(Malformed::TooMany));
        let nested = head(&[12, 0, 1].repeat(DEEPEST + 1));
        assert_eq!(Scan::default().end(&nested), Err(Malformed::TooMany));
        assert_eq!(Scan::default().end(&list_of(2, i32::MAX)), Ok(None));
    }
}
