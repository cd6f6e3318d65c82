//! Programs as text again.
