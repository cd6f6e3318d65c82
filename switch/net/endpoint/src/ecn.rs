//! Whether the path leaves the ECN field alone, as congestion control feedback tells it [RFC 6679 sec 7.4], [RFC 8888 sec 7].

/// Packets in a row that left ECN-capable and arrived as not: "has become all not-ECT ... is clearly an indication that the path results in
/// clearing of the ECT field" [RFC 6679 sec 7.4.2]. The RFC has no number.
const CLEARED_PACKETS: u32 = 20;

/// What a sender of ECN-capable packets has seen. It began with all of them, "leap of faith" [RFC 6679 sec 7.2.3].
#[derive(Debug, Default)]
pub(crate) struct EcnPath {
    cleared: u32,
    failed: bool,
}

impl EcnPath {
    /// A packet arrived with an ECN field. True, once: the path clears it, and packets are to leave as not-ECT from now on.
    pub(crate) fn arrived(&mut self, ecn: u8) -> bool {
        self.cleared = if ecn == 0 { self.cleared + 1 } else { 0 };
        let fails = !self.failed && self.cleared >= CLEARED_PACKETS;
        self.failed |= fails;
        fails
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_clears_ect_ends_ecn_once() {
        let mut path = EcnPath::default();
        assert!((0..CLEARED_PACKETS - 1).all(|_| !path.arrived(0)));
        assert!(!path.arrived(3), "a mark: the field is alive");
        assert!((0..CLEARED_PACKETS - 1).all(|_| !path.arrived(0)));
        assert!(path.arrived(0));
        assert!((0..100).all(|_| !path.arrived(0)));
    }
}
