//! The algorithms of `calculations`: checksums and hashes, as BMv2 computes them.

use twox_hash::XxHash64;

use crate::control::CrcConfig;

/// A checksum or hash algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algo {
    /// Internet checksum (RFC 1071), complemented.
    Csum16,
    Crc16,
    Crc32,
    CrcCcitt,
    Crc8Custom,
    Crc64Custom,
    /// The standard CRC until other parameters are set; see [`CustomCrc`].
    Crc16Custom,
    Crc32Custom,
    Xor8,
    Xor16,
    Xor32,
    Xor64,
    /// The first 8 bytes as a big-endian number.
    Identity,
    Xxh64,
    /// `hash_ex` of simple_switch.
    HashEx,
    /// A new number at each call.
    RoundRobin,
}

/// The name an algorithm has in the JSON.
pub fn by_name(name: &str) -> Option<Algo> {
    Some(match name {
        "csum16" | "cksum16" => Algo::Csum16,
        "crc16" => Algo::Crc16,
        "crc32" => Algo::Crc32,
        "crc16_custom" => Algo::Crc16Custom,
        "crc32_custom" => Algo::Crc32Custom,
        "crcCCITT" => Algo::CrcCcitt,
        "crc8_custom" => Algo::Crc8Custom,
        "crc64_custom" => Algo::Crc64Custom,
        "xor8" => Algo::Xor8,
        "xor16" => Algo::Xor16,
        "xor32" => Algo::Xor32,
        "xor64" => Algo::Xor64,
        "identity" => Algo::Identity,
        "xxh64" | "bmv2_hash" => Algo::Xxh64,
        "hash_ex" => Algo::HashEx,
        "round_robin" => Algo::RoundRobin,
        _ => return None,
    })
}

/// Names of the algorithms, for messages.
pub const NAMES: &str = "csum16, crc16, crc16_custom, crc32, crc32_custom, crcCCITT, crc8_custom, \
crc64_custom, xor8, xor16, xor32, xor64, identity, xxh64, bmv2_hash, hash_ex, round_robin";

/// Applies `algo` to the bytes; `counter` is the state of round robin.
pub fn run(algo: Algo, data: &[u8], counter: &mut u64) -> u64 {
    match algo {
        Algo::Csum16 => u64::from(!ones_sum(data)),
        Algo::Crc16 | Algo::Crc16Custom => reflected(&CRC16, 0, data) & 0xffff,
        Algo::Crc32 | Algo::Crc32Custom => u64::from(crc32(data)),
        Algo::CrcCcitt => u64::from(data.iter().fold(0xffff_u16, |crc, &b| CCITT[usize::from(b ^ (crc >> 8) as u8)] ^ crc << 8)),
        Algo::Crc8Custom => u64::from(data.iter().fold(0_u8, |crc, &b| CRC8[usize::from(b ^ crc)])),
        Algo::Crc64Custom => reflected(&CRC64, 0, data),
        Algo::Xor8 => xor(data, 1),
        Algo::Xor16 => xor(data, 2),
        Algo::Xor32 => xor(data, 4),
        Algo::Xor64 => xor(data, 8),
        Algo::Identity => data.iter().take(8).fold(0, |v, &b| v << 8 | u64::from(b)),
        Algo::Xxh64 => XxHash64::oneshot(0, data),
        Algo::HashEx => u64::from(hash_ex(data)),
        Algo::RoundRobin => {
            *counter = counter.wrapping_add(1);
            counter.wrapping_sub(1)
        }
    }
}

/// A CRC of 16 or 32 bits with parameters of the control plane's choice (Williams 1993, "A painless guide to CRC error detection
/// algorithms", section 16).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomCrc {
    config: CrcConfig,
    table: Box<[u32]>,
}

impl CustomCrc {
    pub fn new(config: CrcConfig) -> CustomCrc {
        let width = config.width;
        let top = 1 << (width - 1);
        let remainder = |byte: u32| {
            (0..8).fold(byte << (width - 8), |crc, _| if crc & top != 0 { crc << 1 ^ config.polynomial } else { crc << 1 })
                & u32::MAX >> (32 - width)
        };
        CustomCrc { config, table: (0..256).map(remainder).collect() }
    }

    pub fn run(&self, data: &[u8]) -> u64 {
        let CrcConfig { width, initial_remainder, final_xor_value, data_reflected, remainder_reflected, .. } = self.config;
        let ones = u32::MAX >> (32 - width);
        let crc = data.iter().fold(initial_remainder & ones, |crc, &byte| {
            let byte = if data_reflected { byte.reverse_bits() } else { byte };
            (self.table[usize::from(byte ^ (crc >> (width - 8)) as u8)] ^ crc << 8) & ones
        });
        let crc = if remainder_reflected { crc.reverse_bits() >> (32 - width) } else { crc };
        u64::from((crc ^ final_xor_value) & ones)
    }
}

/// A checksum over more data, given that over the data before: 0 for none, and the plain sum where the algorithm is csum16.
pub fn go_on(algo: Algo, before: u64, data: &[u8]) -> u64 {
    match algo {
        Algo::Csum16 => u64::from(fold(before + u64::from(ones_sum(data)))),
        Algo::Crc32 | Algo::Crc32Custom => u64::from(crc32_from(!(before as u32), data)),
        Algo::Identity => data.iter().fold(before, |v, &b| v << 8 | u64::from(b)),
        _ => reflected(&CRC16, before & 0xffff, data) & 0xffff,
    }
}

/// One's complement sum of 16-bit big-endian words, an odd byte padded with zero (RFC 1071).
pub fn ones_sum(data: &[u8]) -> u16 {
    let mut sum = 0_u64;
    let mut words = data.chunks_exact(4);
    for w in &mut words {
        sum += u64::from(u32::from_be_bytes([w[0], w[1], w[2], w[3]]));
    }
    let mut tail = [0; 4];
    tail[..words.remainder().len()].copy_from_slice(words.remainder());
    sum += u64::from(u32::from_be_bytes(tail));
    fold(sum)
}

/// Folds a sum of 16-bit words to one.
pub fn fold(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// XOR of words of `n` bytes, the last padded with zeros at its end.
fn xor(data: &[u8], n: usize) -> u64 {
    data.chunks(n).fold(0, |acc, chunk| {
        let word = chunk.iter().fold(0_u64, |v, &b| v << 8 | u64::from(b));
        acc ^ word << (8 * (n - chunk.len()))
    })
}

/// A table of reflected CRC remainders: `poly` is reflected too.
const fn reflected_table(poly: u64) -> [u64; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ poly } else { crc >> 1 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
}

const fn ccitt_table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = (i as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { crc << 1 ^ 0x1021 } else { crc << 1 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
}

const fn crc8_table() -> [u8; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x80 != 0 { crc << 1 ^ 0x07 } else { crc << 1 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
}

/// Polynomial 0x8005.
static CRC16: [u64; 256] = reflected_table(0xa001);
/// Polynomial 0x04c11db7; the remainders of a byte, and of a byte with one, two and three behind it.
static CRC32: [[u32; 256]; 4] = crc32_tables();
/// Polynomial 0x1b.
static CRC64: [u64; 256] = reflected_table(0xd800_0000_0000_0000);
static CCITT: [u16; 256] = ccitt_table();
static CRC8: [u8; 256] = crc8_table();

const fn crc32_tables() -> [[u32; 256]; 4] {
    let one = reflected_table(0xedb8_8320);
    let mut tables = [[0; 256]; 4];
    let mut i = 0;
    while i < 256 {
        let mut crc = one[i] as u32;
        let mut k = 0;
        while k < 4 {
            tables[k][i] = crc;
            crc = one[(crc & 0xff) as usize] as u32 ^ crc >> 8;
            k += 1;
        }
        i += 1;
    }
    tables
}

/// CRC-32, four bytes at a time (Kounavis and Berry 2008).
fn crc32(data: &[u8]) -> u32 {
    crc32_from(u32::MAX, data)
}

fn crc32_from(mut crc: u32, data: &[u8]) -> u32 {
    let mut words = data.chunks_exact(4);
    for w in &mut words {
        let v = crc ^ u32::from_le_bytes([w[0], w[1], w[2], w[3]]);
        crc = CRC32[3][(v & 0xff) as usize]
            ^ CRC32[2][(v >> 8 & 0xff) as usize]
            ^ CRC32[1][(v >> 16 & 0xff) as usize]
            ^ CRC32[0][(v >> 24) as usize];
    }
    for &b in words.remainder() {
        crc = CRC32[0][usize::from(crc as u8 ^ b)] ^ crc >> 8;
    }
    !crc
}

fn reflected(table: &[u64; 256], init: u64, data: &[u8]) -> u64 {
    data.iter().fold(init, |crc, &b| table[usize::from(crc as u8 ^ b)] ^ crc >> 8)
}

/// FNV-like hash of simple_switch; bytes are signed there.
fn hash_ex(data: &[u8]) -> u32 {
    let mut hash = 2_166_136_261_u32;
    for &b in data {
        hash = (hash ^ (b as i8) as u32).wrapping_mul(16_777_619);
    }
    hash = hash.wrapping_add(hash << 13);
    hash ^= hash >> 7;
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 17;
    hash.wrapping_add(hash << 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h(algo: Algo, data: &[u8]) -> u64 {
        run(algo, data, &mut 0)
    }

    /// Check values for "123456789" from the catalogue of parametrised CRC algorithms.
    #[test]
    fn crc_check_values() {
        let data = b"123456789";
        assert_eq!(h(Algo::Crc16, data), 0xbb3d); // CRC-16/ARC
        assert_eq!(h(Algo::Crc32, data), 0xcbf4_3926); // CRC-32/ISO-HDLC
        assert_eq!(h(Algo::Crc32, b"The quick brown fox jumps over the lazy dog"), 0x414f_a339);
        assert_eq!(h(Algo::CrcCcitt, data), 0x29b1); // CRC-16/IBM-3740
        assert_eq!(h(Algo::Crc8Custom, data), 0xf4); // CRC-8/SMBUS
    }

    /// Of the same catalogue: parameters and check values.
    #[test]
    fn custom_crc_check_values() {
        let cases = [
            (16, 0x8005, 0, 0, true, 0xbb3d),                          // CRC-16/ARC
            (16, 0x1021, 0xffff, 0, false, 0x29b1),                    // CRC-16/IBM-3740
            (16, 0x3d65, 0, 0xffff, true, 0xea82),                     // CRC-16/DNP
            (32, 0x04c1_1db7, u32::MAX, u32::MAX, true, 0xcbf4_3926),  // CRC-32/ISO-HDLC
            (32, 0x04c1_1db7, u32::MAX, u32::MAX, false, 0xfc89_1918), // CRC-32/BZIP2
            (32, 0x1edc_6f41, u32::MAX, u32::MAX, true, 0xe306_9283),  // CRC-32/ISCSI
        ];
        for (width, polynomial, initial_remainder, final_xor_value, reflected, check) in cases {
            let config = CrcConfig {
                width,
                polynomial,
                initial_remainder,
                final_xor_value,
                data_reflected: reflected,
                remainder_reflected: reflected,
            };
            assert_eq!(CustomCrc::new(config).run(b"123456789"), check, "{config:x?}");
        }
    }

    /// The example of [RFC 1071 sec 3].
    #[test]
    fn internet_checksum() {
        let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(ones_sum(&data), 0xddf2);
        assert_eq!(h(Algo::Csum16, &data), 0x220d);
        assert_eq!(h(Algo::Csum16, &[]), 0xffff);
    }

    #[test]
    fn xxh64_known() {
        assert_eq!(XxHash64::oneshot(0, b""), 0xef46_db37_51d8_e999);
        assert_eq!(XxHash64::oneshot(0, b"a"), 0xd24e_c4f1_a98c_6e5b);
        assert_eq!(XxHash64::oneshot(0, b"Nobody inspects the spammish repetition"), 0xfbce_a83c_8a37_8bf1);
    }

    #[test]
    fn xor_pads_at_the_end() {
        assert_eq!(h(Algo::Xor16, &[0x12, 0x34, 0x56]), 0x1234 ^ 0x5600);
        assert_eq!(h(Algo::Identity, &[1, 2, 3]), 0x010203);
    }
}
