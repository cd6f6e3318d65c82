//! Unsigned integers of any width, as the control plane writes and reads them.

use std::fmt;

/// An unsigned integer of any width, kept as big-endian bytes without leading zero bytes
/// (zero is one zero byte): the canonical form of bytestrings
/// [P4Runtime sec 8.3].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Value {
    bytes: Vec<u8>,
}

impl Value {
    /// The value whose big-endian bytes are `bytes`; leading zeros and an empty slice are allowed.
    pub fn from_be_bytes(bytes: &[u8]) -> Value {
        let start = bytes.iter().position(|&b| b != 0).unwrap_or(bytes.len());
        let bytes = if start == bytes.len() { vec![0] } else { bytes[start..].to_vec() };
        Value { bytes }
    }

    /// Little-endian 64-bit limbs to a value.
    pub fn from_limbs(limbs: &[u64]) -> Value {
        let mut bytes = Vec::with_capacity(limbs.len() * 8);
        for limb in limbs.iter().rev() {
            bytes.extend_from_slice(&limb.to_be_bytes());
        }
        Value::from_be_bytes(&bytes)
    }

    /// Writes the value as little-endian limbs; bits beyond `limbs` are lost.
    pub fn write_limbs(&self, limbs: &mut [u64]) {
        limbs.fill(0);
        for (i, &b) in self.bytes.iter().rev().enumerate() {
            if let Some(limb) = limbs.get_mut(i / 8) {
                *limb |= u64::from(b) << (8 * (i % 8));
            }
        }
    }

    /// Parses decimal, `0x` hexadecimal, `0o` octal or `0b` binary digits; `_` separates digits.
    /// `None` when the text is not such a number or is negative.
    pub fn parse(text: &str) -> Option<Value> {
        let (radix, digits) = match text.get(..2) {
            Some("0x" | "0X") => (16, &text[2..]),
            Some("0b" | "0B") => (2, &text[2..]),
            Some("0o" | "0O") => (8, &text[2..]),
            _ => (10, text),
        };
        let digits = digits.replace('_', "");
        let big = num_bigint::BigUint::parse_bytes(digits.as_bytes(), radix)?;
        Some(Value::from_be_bytes(&big.to_bytes_be()))
    }

    /// The canonical big-endian bytes: no leading zero byte, at least one byte.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Big-endian bytes padded to hold `width` bits. A value wider than that keeps its low bits.
    pub fn to_be_bytes(&self, width: u32) -> Vec<u8> {
        let n = width.div_ceil(8) as usize;
        let mut out = vec![0; n];
        for (dst, src) in out.iter_mut().rev().zip(self.bytes.iter().rev()) {
            *dst = *src;
        }
        out
    }

    /// Number of significant bits; zero has none.
    pub fn bit_len(&self) -> u32 {
        let first = self.bytes[0];
        (self.bytes.len() as u32) * 8 - first.leading_zeros()
    }

    /// The value when it fits in 64 bits.
    pub fn to_u64(&self) -> Option<u64> {
        if self.bytes.len() > 8 {
            return None;
        }
        Some(self.bytes.iter().fold(0, |v, &b| v << 8 | u64::from(b)))
    }

    /// The value when it fits in 128 bits.
    pub fn to_u128(&self) -> Option<u128> {
        if self.bytes.len() > 16 {
            return None;
        }
        Some(self.bytes.iter().fold(0, |v, &b| v << 8 | u128::from(b)))
    }

    /// All ones in `width` bits.
    pub fn ones(width: u32) -> Value {
        let mut bytes = vec![0xff; width.div_ceil(8) as usize];
        if !width.is_multiple_of(8) {
            bytes[0] = (1 << (width % 8)) - 1;
        }
        Value::from_be_bytes(&bytes)
    }

    /// True when the value is zero.
    pub fn is_zero(&self) -> bool {
        self.bytes == [0]
    }
}

impl From<u64> for Value {
    fn from(v: u64) -> Value {
        Value::from_be_bytes(&v.to_be_bytes())
    }
}

impl From<u32> for Value {
    fn from(v: u32) -> Value {
        Value::from(u64::from(v))
    }
}

impl From<u128> for Value {
    fn from(v: u128) -> Value {
        Value::from_be_bytes(&v.to_be_bytes())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        for (i, b) in self.bytes.iter().enumerate() {
            if i == 0 {
                write!(f, "{b:x}")?;
            } else {
                write!(f, "{b:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
