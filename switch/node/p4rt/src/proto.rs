//! The protobuf messages of P4Runtime, generated at build time (see `build.rs`).

#![allow(missing_docs, clippy::all, clippy::pedantic)]

/// Package `p4`.
pub mod p4 {
    /// Package `p4.v1`: the service and its messages.
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/p4.v1.rs"));
    }
    /// Package `p4.config`.
    pub mod config {
        /// Package `p4.config.v1`: P4Info.
        pub mod v1 {
            include!(concat!(env!("OUT_DIR"), "/p4.config.v1.rs"));
        }
    }
}

/// Package `google`.
pub mod google {
    /// Package `google.rpc`.
    pub mod rpc {
        include!(concat!(env!("OUT_DIR"), "/google.rpc.rs"));
    }
}

/// The descriptors of all of them, a serialised `google.protobuf.FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
