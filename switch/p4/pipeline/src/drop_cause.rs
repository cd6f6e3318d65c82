//! Why packets are dropped.

/// Why a packet left the pipeline without being queued or emitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DropCause {
    /// `egress_spec` was the drop port at the end of ingress.
    Ingress,
    /// `egress_spec` was the drop port at the end of egress.
    Egress,
    /// The multicast group is unknown or empty.
    MulticastEmpty,
    /// The packet's priority is not below [`crate::SwitchConfig::priorities`].
    Priority,
    /// Resubmitted or recirculated too often.
    Loop,
    /// An `assert` or `assume` failed.
    Assert,
    /// Longer than [`crate::MAX_FRAME`] bytes, or the program ran without end.
    Limit,
    /// Queued before another program was loaded.
    Swapped,
}
