//! Signed integers without bound, quick while they are small: what BMv2 computes with.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

/// Longest left shift carried out; a longer one yields zero (no P4 value is that wide).
const MAX_SHIFT: u128 = 1 << 16;

/// An integer; `Big` only where `i128` would overflow.
#[derive(Debug, Clone)]
pub enum Num {
    Small(i128),
    Big(BigInt),
}

use Num::{Big, Small};

impl Num {
    pub fn from_u64(v: u64) -> Num {
        Small(i128::from(v))
    }

    pub fn from_big(v: BigInt) -> Num {
        match i128::try_from(&v) {
            Ok(small) => Small(small),
            Err(_) => Big(v),
        }
    }

    /// Little-endian limbs as an unsigned number.
    pub fn from_limbs(limbs: &[u64]) -> Num {
        let used = limbs.iter().rposition(|&l| l != 0).map_or(0, |i| i + 1);
        match limbs[..used] {
            [] => Small(0),
            [a] => Small(i128::from(a)),
            [a, b] if b >> 63 == 0 => Small((u128::from(b) << 64 | u128::from(a)) as i128),
            _ => {
                let digits: Vec<u32> = limbs[..used].iter().flat_map(|l| [*l as u32, (*l >> 32) as u32]).collect();
                Big(BigInt::new(Sign::Plus, digits))
            }
        }
    }

    pub fn to_big(&self) -> BigInt {
        match self {
            Small(v) => BigInt::from(*v),
            Big(v) => v.clone(),
        }
    }

    /// The low bits, two's complement, written to little-endian limbs and cut to `width`.
    pub fn write_limbs(&self, limbs: &mut [u64], width: u32) {
        match self {
            Small(v) => {
                let fill = if *v < 0 { u64::MAX } else { 0 };
                for (i, limb) in limbs.iter_mut().enumerate() {
                    *limb = match i {
                        0 => *v as u64,
                        1 => (*v >> 64) as u64,
                        _ => fill,
                    };
                }
            }
            Big(v) => {
                let bytes = v.to_signed_bytes_le();
                let fill = if v.sign() == Sign::Minus { 0xff } else { 0 };
                for (i, limb) in limbs.iter_mut().enumerate() {
                    let mut raw = [fill; 8];
                    for (j, b) in raw.iter_mut().enumerate() {
                        if let Some(&x) = bytes.get(i * 8 + j) {
                            *b = x;
                        }
                    }
                    *limb = u64::from_le_bytes(raw);
                }
            }
        }
        cut(limbs, width);
    }

    /// The low 64 bits, two's complement.
    pub fn low_u64(&self) -> u64 {
        let mut limb = [0];
        self.write_limbs(&mut limb, 64);
        limb[0]
    }

    pub fn is_negative(&self) -> bool {
        match self {
            Small(v) => *v < 0,
            Big(v) => v.sign() == Sign::Minus,
        }
    }

    pub fn is_zero(&self) -> bool {
        matches!(self, Small(0))
    }

    /// As an index or length; `None` when negative or beyond 64 bits.
    pub fn to_u64(&self) -> Option<u64> {
        match self {
            Small(v) => u64::try_from(*v).ok(),
            Big(_) => None,
        }
    }

    fn op(&self, b: &Num, small: impl Fn(i128, i128) -> Option<i128>, big: impl Fn(BigInt, BigInt) -> BigInt) -> Num {
        if let (Small(x), Small(y)) = (self, b)
            && let Some(r) = small(*x, *y)
        {
            return Small(r);
        }
        Num::from_big(big(self.to_big(), b.to_big()))
    }

    pub fn add(&self, b: &Num) -> Num {
        self.op(b, i128::checked_add, |x, y| x + y)
    }

    pub fn sub(&self, b: &Num) -> Num {
        self.op(b, i128::checked_sub, |x, y| x - y)
    }

    pub fn mul(&self, b: &Num) -> Num {
        self.op(b, i128::checked_mul, |x, y| x * y)
    }

    /// Quotient truncated toward zero; zero for a zero divisor, where BMv2 aborts.
    pub fn div(&self, b: &Num) -> Num {
        if b.is_zero() {
            return Small(0);
        }
        self.op(b, i128::checked_div, |x, y| x / y)
    }

    /// Remainder of [`Num::div`]; zero for a zero divisor.
    pub fn rem(&self, b: &Num) -> Num {
        if b.is_zero() {
            return Small(0);
        }
        self.op(b, i128::checked_rem, |x, y| x % y)
    }

    pub fn and(&self, b: &Num) -> Num {
        self.op(b, |x, y| Some(x & y), |x, y| x & y)
    }

    pub fn or(&self, b: &Num) -> Num {
        self.op(b, |x, y| Some(x | y), |x, y| x | y)
    }

    pub fn xor(&self, b: &Num) -> Num {
        self.op(b, |x, y| Some(x ^ y), |x, y| x ^ y)
    }

    pub fn not(&self) -> Num {
        match self {
            Small(v) => Small(!*v),
            Big(v) => Num::from_big(!v.clone()),
        }
    }

    /// Left shift; a negative amount is none.
    pub fn shl(&self, b: &Num) -> Num {
        let amount = match b {
            Small(v) if *v <= 0 => return self.clone(),
            Small(v) if (*v as u128) < MAX_SHIFT => *v as u32,
            _ => return Small(0),
        };
        if let Small(v) = self
            && amount < 127
            && (v << amount) >> amount == *v
        {
            return Small(v << amount);
        }
        Num::from_big(self.to_big() << amount)
    }

    /// Right shift, rounding down; a negative amount is none.
    pub fn shr(&self, b: &Num) -> Num {
        let all_out = if self.is_negative() { Small(-1) } else { Small(0) };
        let amount = match b {
            Small(v) if *v <= 0 => return self.clone(),
            Small(v) if (*v as u128) < MAX_SHIFT => *v as u32,
            _ => return all_out,
        };
        match self {
            Small(v) if amount < 128 => Small(v >> amount),
            Small(_) => all_out,
            Big(v) => Num::from_big(v >> amount),
        }
    }

    fn power(width: u32) -> Num {
        if width < 127 {
            Small(1 << width)
        } else {
            Big(BigInt::from(1) << width)
        }
    }

    /// The value of the low `width` bits read as two's complement (`two_comp_mod`).
    pub fn two_comp_mod(&self, width: u32) -> Num {
        if width == 0 {
            return Small(0);
        }
        if let Small(v) = self
            && width <= 127
        {
            let s = 128 - width;
            return Small((v << s) >> s);
        }
        let modulus = Num::power(width);
        let low = self.and(&modulus.sub(&Small(1)));
        if low.cmp(&Num::power(width - 1)) == Ordering::Less {
            low
        } else {
            low.sub(&modulus)
        }
    }

    /// Clamped to the unsigned range of `width` bits (`usat_cast`).
    pub fn usat(&self, width: u32) -> Num {
        self.clamp(&Small(0), &Num::power(width).sub(&Small(1)))
    }

    /// Clamped to the signed range of `width` bits (`sat_cast`).
    pub fn sat(&self, width: u32) -> Num {
        if width == 0 {
            return Small(0);
        }
        let half = Num::power(width - 1);
        self.clamp(&Small(0).sub(&half), &half.sub(&Small(1)))
    }

    fn clamp(&self, low: &Num, high: &Num) -> Num {
        if self.cmp(low) == Ordering::Less {
            low.clone()
        } else if self.cmp(high) == Ordering::Greater {
            high.clone()
        } else {
            self.clone()
        }
    }

    pub fn cmp(&self, b: &Num) -> Ordering {
        match (self, b) {
            (Small(x), Small(y)) => x.cmp(y),
            _ => self.to_big().cmp(&b.to_big()),
        }
    }
}

/// Clears the bits of little-endian limbs from `width` on.
pub fn cut(limbs: &mut [u64], width: u32) {
    for (i, limb) in limbs.iter_mut().enumerate() {
        let start = i as u32 * 64;
        if start >= width {
            *limb = 0;
        } else if width - start < 64 {
            *limb &= (1 << (width - start)) - 1;
        }
    }
}
