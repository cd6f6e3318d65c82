//! A table of three keys, for tests of lookup and of the control interface.

use super::*;

/// A table over `k.a:8, k.b:16, k.w:72` with the given match types; the action writes its
/// argument to `k.out`.
pub fn program(match_type: &str, kinds: [&str; 3]) -> Build {
    let mut b = Build::new();
    b.header("k", &[("a", 8), ("b", 16), ("w", 72), ("out", 16)]);
    b.extracts(&["k"]);
    b.action("hit", &[("v", 16)], &[set_port(1), assign(field("k", "out"), json!({"type": "runtime_data", "value": 0}))]);
    b.action("miss", &[], &[set_port(2)]);
    let key = [("k", "a", kinds[0]), ("k", "b", kinds[1]), ("k", "w", kinds[2])];
    b.table(0, "t", match_type, &key, &["hit", "miss"], None);
    b
}

pub fn frame(v: [u128; 3]) -> Vec<u8> {
    let mut f = vec![v[0] as u8];
    f.extend_from_slice(&(v[1] as u16).to_be_bytes());
    f.extend_from_slice(&v[2].to_be_bytes()[7..]);
    f.extend_from_slice(&[0xff, 0xff]);
    f
}
