//! Constant bit rate.

use fairlane_units::transmission;

use crate::{Emission, Nanos, ParameterError};

/// Packets of one size at a constant rate. The k-th leaves `k * bytes * 8 / rate` after the first, rounded down to a nanosecond:
/// no error accumulates.
#[derive(Clone, Debug)]
pub struct ConstantBitRate {
    rate_bps: u64,
    packet_bytes: u32,
    start: Nanos,
    sent: u64,
}

impl ConstantBitRate {
    /// `rate_bps` of payload, the first packet at `start`.
    ///
    /// # Errors
    /// A rate or size of 0.
    pub fn new(rate_bps: u64, packet_bytes: u32, start: Nanos) -> Result<Self, ParameterError> {
        if rate_bps == 0 {
            return Err(ParameterError::value("rate_bps", 0, "give at least 1 bit/s"));
        }
        if packet_bytes == 0 {
            return Err(ParameterError::value("packet_bytes", 0, "give at least 1 byte"));
        }
        Ok(ConstantBitRate { rate_bps, packet_bytes, start, sent: 0 })
    }
}

/// How long after the first of its kind packet `k` leaves.
pub(crate) fn offset(k: u64, packet_bytes: u32, rate_bps: u64) -> Nanos {
    let bits = u128::from(k) * u128::from(packet_bytes) * 8;
    transmission(bits, rate_bps)
}

impl Iterator for ConstantBitRate {
    type Item = Emission;

    fn next(&mut self) -> Option<Emission> {
        let at = self.start.checked_add(offset(self.sent, self.packet_bytes, self.rate_bps))?;
        self.sent += 1;
        Some(Emission { at, bytes: self.packet_bytes.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_exact_over_any_time() {
        // 3 Mbit/s of 1000 B: a gap of 2 666 666.67 ns
        let source = ConstantBitRate::new(3_000_000, 1000, 5).unwrap();
        let packets: Vec<_> = source.take(3_000_001).collect();
        assert_eq!((packets[0].at, packets[1].at, packets[2].at), (5, 2_666_671, 5_333_338));
        assert_eq!(packets[3_000_000].at, 8_000_000_000_005);
    }

    #[test]
    fn zero_is_refused() {
        assert!(ConstantBitRate::new(0, 1, 0).unwrap_err().to_string().starts_with("`rate_bps` = 0"));
        assert!(ConstantBitRate::new(1, 0, 0).unwrap_err().to_string().starts_with("`packet_bytes` = 0"));
    }

    #[test]
    fn ends_where_time_ends() {
        let source = ConstantBitRate::new(1, u32::MAX, Nanos::MAX - 1).unwrap();
        assert_eq!(source.count(), 1);
    }
}
