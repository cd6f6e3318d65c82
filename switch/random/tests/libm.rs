//! The functions that records of virtual time depend on, bit by bit. Other numbers here mean other records: a new version of libm, or a machine
//! on which the crate computes otherwise.

use fairlane_random as _;

/// FNV-1a, 64 bits, of the results' bits.
fn digest(function: impl Fn(f64) -> f64) -> u64 {
    (1..=20_000).map(|n| function(f64::from(n) * 0.0137)).fold(0xcbf2_9ce4_8422_2325, |digest, value| {
        value.to_bits().to_le_bytes().iter().fold(digest, |digest, &byte| (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    })
}

#[test]
fn they_are_the_same_on_every_machine() {
    let found = [
        ("cbrt", digest(libm::cbrt)),
        ("cos", digest(libm::cos)),
        ("exp", digest(|x| libm::exp(-x))),
        ("floor", digest(libm::floor)),
        ("log", digest(libm::log)),
        ("log1p", digest(|x| libm::log1p(-x / 275.0))),
        ("sqrt", digest(libm::sqrt)),
    ];
    let known = [
        ("cbrt", 0x72b2_cca3_b15d_2586),
        ("cos", 0x8e42_d6ff_26dd_94fc),
        ("exp", 0xafc5_5435_89e0_bcc0),
        ("floor", 0x528e_140a_9ecd_7759),
        ("log", 0xc87e_ae4d_af4f_2109),
        ("log1p", 0xd6ab_2665_2756_d94c),
        ("sqrt", 0x1f19_ad18_0063_6d32),
    ];
    assert_eq!(found, known);
}
