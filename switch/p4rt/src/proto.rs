//! The protobuf messages of P4Runtime, generated at build time (see `build.rs`).

#![allow(missing_docs, clippy::all, clippy::pedantic)]

/// Package `p4`.
pub mod p4 {
    /// Package `p4.v1`: the service and its messages.
    pub mod v1 {
        tonic::include_proto!("p4.v1");
    }
    /// Package `p4.config`.
    pub mod config {
        /// Package `p4.config.v1`: P4Info.
        pub mod v1 {
            tonic::include_proto!("p4.config.v1");
        }
    }
}

/// Package `google`.
pub mod google {
    /// Package `google.rpc`.
    pub mod rpc {
        tonic::include_proto!("google.rpc");
    }
}

/// The descriptors of all of them, a serialised `google.protobuf.FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
