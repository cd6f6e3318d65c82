//! `exp`, `ln` and `power`, each rounded to the nearest number: the same bits on every machine, since `+ - * /` are.
//!
//! Each is computed as a sum of two numbers (T. J. Dekker, "A floating-point technique for extending the available precision", 1971),
//! to about 104 bits. Where the true value could lie on the other side of a middle between two numbers (Ziv's test), or near the ends
//! of the range, the answer is `None`: one call in 2^40, and each logarithm of a number within 2^-44 of 1. The caller then computes it
//! with more digits.

/// The unevaluated sum of two numbers, the second at most half of the first's last bit.
#[derive(Clone, Copy)]
struct Pair {
    high: f64,
    low: f64,
}

/// ln 2 in three parts. An integer below 2^11 times one of the first two is exact.
const LN_2: [f64; 3] =
    [f64::from_bits(0x3fe6_2e42_fefa_3800), f64::from_bits(0x3d2e_f357_93c7_6000), f64::from_bits(0x3a8c_c01f_97b5_7a08)];
/// Relative, and of a logarithm absolute: at least 2^8 times the errors of what is below, which are at most 2^-104.
const ERROR: f64 = 1.0 / (1u128 << 96) as f64;
/// Twice the relative error that 30 digits have, by which `fairlane.arithmetic` computes what is unsure here.
const DIGITS: f64 = 4e-30;

/// Of any two numbers (D. E. Knuth).
fn sum(a: f64, b: f64) -> Pair {
    let high = a + b;
    let part = high - a;
    Pair { high, low: (a - (high - part)) + (b - part) }
}

fn halves(a: f64) -> (f64, f64) {
    let moved = 134_217_729.0 * a; // 2^27 + 1
    let high = moved - (moved - a);
    (high, a - high)
}

fn product(a: f64, b: f64) -> Pair {
    let high = a * b;
    let ((ah, al), (bh, bl)) = (halves(a), halves(b));
    Pair { high, low: ((ah * bh - high) + ah * bl + al * bh) + al * bl }
}

impl Pair {
    fn plus(self, other: Pair) -> Pair {
        let (highs, lows) = (sum(self.high, other.high), sum(self.low, other.low));
        let first = sum(highs.high, highs.low + lows.high);
        sum(first.high, first.low + lows.low)
    }

    fn and(self, other: f64) -> Pair {
        self.plus(Pair { high: other, low: 0.0 })
    }

    fn times(self, other: Pair) -> Pair {
        let high = product(self.high, other.high);
        sum(high.high, high.low + (self.high * other.low + self.low * other.high))
    }

    fn over(self, n: f64) -> Pair {
        let high = self.high / n;
        let back = product(high, n);
        sum(high, (((self.high - back.high) - back.low) + self.low) / n)
    }

    fn doubled(self) -> Pair {
        Pair { high: 2.0 * self.high, low: 2.0 * self.low }
    }

    /// The nearest number, where an error of up to `error` cannot change it.
    fn rounded(self, error: f64) -> Option<f64> {
        let least = self.high + (self.low - error);
        (least == self.high + (self.low + error)).then_some(least)
    }
}

/// e^x - 1 and k: e^(x + k ln 2) is the argument's. |x| is below 0.35.
fn reduced(argument: Pair) -> (Pair, f64) {
    let k = (argument.high * std::f64::consts::LOG2_E).round();
    let rest = sum(argument.high, -k * LN_2[0]).and(argument.low).and(-k * LN_2[1]).and(-k * LN_2[2]);
    let small = Pair { high: rest.high / 256.0, low: rest.low / 256.0 };
    // Taylor: x (1 + x/2 (1 + x/3 (...))); its twelfth term is below 2^-120 of x.
    let mut bracket = Pair { high: 1.0, low: 0.0 };
    for n in (2..=12).rev() {
        bracket = small.over(f64::from(n)).times(bracket).and(1.0);
    }
    let mut found = small.times(bracket);
    for _ in 0..8 {
        found = found.doubled().plus(found.times(found)); // (1 + p)^2 - 1
    }
    (found, k)
}

/// With an error of `ERROR`, absolute and relative.
fn logarithm(x: f64) -> Pair {
    let bits = x.to_bits();
    let mut power = ((bits >> 52) as i32) - 1023;
    let mut part = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if part > std::f64::consts::SQRT_2 {
        part /= 2.0;
        power += 1;
    }
    let (near, k) = (libm::log(part), f64::from(power));
    let (less_one, twos) = reduced(Pair { high: -near, low: 0.0 });
    let scale = if twos > 0.0 {
        2.0
    } else if twos < 0.0 {
        0.5
    } else {
        1.0
    }; // |near| < 0.35
       // part e^-near is 1 + t, and t about 2^-53.
    let t = less_one.and(1.0).times(Pair { high: scale * part, low: 0.0 }).and(-1.0);
    let correction = t.plus(Pair { high: -t.high * t.high / 2.0, low: 0.0 });
    sum(k * LN_2[0], near).and(k * LN_2[1]).and(k * LN_2[2]).plus(correction)
}

fn exponential(argument: Pair, error: f64) -> Option<f64> {
    let (less_one, k) = reduced(argument);
    let found = sum(1.0, less_one.high).and(less_one.low).rounded(2.0 * error)?;
    Some(found * f64::from_bits(((k as i64 + 1023) as u64) << 52))
}

/// e^x.
#[must_use]
pub fn exp(x: f64) -> Option<f64> {
    (x.abs() <= 700.0).then(|| exponential(Pair { high: x, low: 0.0 }, ERROR)).flatten()
}

/// The natural logarithm.
#[must_use]
pub fn ln(x: f64) -> Option<f64> {
    if !(1e-300..=1e300).contains(&x) {
        return None;
    }
    let found = logarithm(x);
    found.rounded(ERROR * (1.0 + found.high.abs()))
}

/// base^exponent.
#[must_use]
pub fn power(base: f64, exponent: f64) -> Option<f64> {
    if !(1e-300..=1e300).contains(&base) || !(1e-200..=1e200).contains(&exponent.abs()) {
        return None;
    }
    let log = logarithm(base);
    let argument = log.times(Pair { high: exponent, low: 0.0 });
    let size = argument.high.abs();
    if !(1e-200..=600.0).contains(&size) {
        return None;
    }
    let relative = ERROR * (1.0 + exponent.abs() * (1.0 + log.high.abs())) + DIGITS * size;
    exponential(argument, relative)
}
