//! Expected against received packets.

use std::fmt;

/// What an `expect` asks of one packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Nibbles; `None` matches any. Empty with `exact` false matches every packet.
    pub nibbles: Vec<Option<u8>>,
    /// The packet has no more than these nibbles (`$`).
    pub exact: bool,
}

impl Pattern {
    /// Matches every packet.
    pub fn any() -> Pattern {
        Pattern { nibbles: Vec::new(), exact: false }
    }

    /// Why a packet does not match, or `None` when it does.
    pub fn mismatch(&self, bytes: &[u8]) -> Option<Mismatch> {
        let received = bytes.len() * 2;
        for (i, wanted) in self.nibbles.iter().enumerate() {
            if i >= received {
                return Some(Mismatch::TooShort);
            }
            let got = if i % 2 == 0 { bytes[i / 2] >> 4 } else { bytes[i / 2] & 15 };
            if wanted.is_some_and(|w| w != got) {
                return Some(Mismatch::Nibble(i));
            }
        }
        (self.exact && received > self.nibbles.len()).then_some(Mismatch::TooLong)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for nibble in &self.nibbles {
            match nibble {
                Some(n) => write!(f, "{n:x}")?,
                None => f.write_str("*")?,
            }
        }
        f.write_str(if self.exact { "$" } else { "" })
    }
}

/// How a packet differs from a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch {
    /// The packet ends before the pattern.
    TooShort,
    /// The pattern ends with `$` before the packet does.
    TooLong,
    /// The first nibble that differs, counted from 0.
    Nibble(usize),
}

/// One thing that is not as the script says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// A packet differs from what line `line` expects.
    Packet { port: u32, index: usize, line: u32, expected: Pattern, received: Vec<u8>, mismatch: Mismatch },
    /// A port got more or fewer packets than expected.
    Count { port: u32, expected: usize, received: Vec<Vec<u8>> },
    /// Line `line` expects something else of a counter.
    Counter { line: u32, what: String, received: u64 },
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Packet { port, index, line, expected, received, mismatch } => {
                let what = match mismatch {
                    Mismatch::TooShort => "is too short".to_string(),
                    Mismatch::TooLong => "is too long".to_string(),
                    Mismatch::Nibble(i) => format!("differs in byte {}", i / 2),
                };
                let column = match mismatch {
                    Mismatch::TooShort => received.len() * 2,
                    Mismatch::TooLong => expected.nibbles.len(),
                    Mismatch::Nibble(i) => *i,
                };
                writeln!(f, "port {port}, packet {}: {what} (expected in line {line})", index + 1)?;
                writeln!(f, "  expected {expected}")?;
                writeln!(f, "  received {}", hex(received))?;
                write!(f, "           {}^", " ".repeat(column))
            }
            Difference::Count { port, expected, received } => {
                write!(f, "port {port}: expected {expected} packets, received {}", received.len())?;
                for packet in received {
                    write!(f, "\n  received {}", hex(packet))?;
                }
                Ok(())
            }
            Difference::Counter { line, what, received } => {
                write!(f, "line {line}: expected {what}, the counter says {received}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str, exact: bool) -> Pattern {
        Pattern { nibbles: text.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect(), exact }
    }

    #[test]
    fn a_pattern_is_a_prefix_unless_it_ends_with_a_dollar() {
        assert_eq!(pattern("01*2", false).mismatch(&[0x01, 0xf2, 0x33]), None);
        assert_eq!(pattern("01*2", true).mismatch(&[0x01, 0xf2, 0x33]), Some(Mismatch::TooLong));
        assert_eq!(pattern("01*2", true).mismatch(&[0x01, 0xf2]), None);
        assert_eq!(pattern("01*2", false).mismatch(&[0x01]), Some(Mismatch::TooShort));
        assert_eq!(pattern("01*2", false).mismatch(&[0x01, 0xf3]), Some(Mismatch::Nibble(3)));
        assert_eq!(Pattern::any().mismatch(&[]), None);
    }

    #[test]
    fn a_difference_points_at_the_nibble() {
        let difference = Difference::Packet {
            port: 3,
            index: 0,
            line: 7,
            expected: pattern("0a0b", false),
            received: vec![0x0a, 0x1b],
            mismatch: Mismatch::Nibble(2),
        };
        let text = difference.to_string();
        assert_eq!(text, "port 3, packet 1: differs in byte 1 (expected in line 7)\n  expected 0a0b\n  received 0a1b\n             ^");
    }
}
