//! The codes of BMv2's exceptions, by the service's part that throws them.

/// `InvalidTableOperation`, of tables and action profiles.
pub mod table {
    pub const FULL: i32 = 1;
    pub const INVALID_HANDLE: i32 = 2;
    pub const EXPIRED_HANDLE: i32 = 3;
    pub const COUNTERS_DISABLED: i32 = 4;
    pub const METERS_DISABLED: i32 = 5;
    pub const AGEING_DISABLED: i32 = 6;
    pub const INVALID_NAME: i32 = 7;
    pub const INVALID_ACTION: i32 = 8;
    pub const WRONG_TYPE: i32 = 9;
    pub const INVALID_MEMBER: i32 = 10;
    pub const MEMBER_USED: i32 = 11;
    pub const MEMBER_IN_GROUP: i32 = 12;
    pub const MEMBER_NOT_IN_GROUP: i32 = 13;
    pub const INVALID_GROUP: i32 = 14;
    pub const GROUP_USED: i32 = 15;
    pub const EMPTY_GROUP: i32 = 16;
    pub const DUPLICATE: i32 = 17;
    pub const BAD_KEY: i32 = 18;
    pub const INVALID_METER_OPERATION: i32 = 19;
    pub const CONST_DEFAULT: i32 = 21;
    pub const INVALID_PROFILE: i32 = 23;
    pub const NO_SELECTION: i32 = 24;
    pub const IMMUTABLE: i32 = 25;
    pub const BAD_ACTION_DATA: i32 = 26;
    pub const NO_KEY: i32 = 27;
    pub const ERROR: i32 = 100;
}

/// `InvalidCounterOperation`.
pub mod counter {
    pub const INVALID_NAME: i32 = 1;
    pub const INVALID_INDEX: i32 = 2;
}

/// `InvalidMeterOperation`.
pub mod meter {
    pub const INVALID_NAME: i32 = 1;
    pub const INVALID_INDEX: i32 = 2;
    pub const BAD_RATES: i32 = 3;
    pub const INVALID_RATE: i32 = 4;
    pub const INVALID_BURST: i32 = 5;
}

/// `InvalidRegisterOperation`.
pub mod register {
    pub const INVALID_NAME: i32 = 1;
    pub const INVALID_INDEX: i32 = 2;
    pub const ERROR: i32 = 3;
}

/// `InvalidParseVSetOperation`.
pub mod value_set {
    pub const INVALID_NAME: i32 = 1;
    pub const ERROR: i32 = 2;
}

/// `InvalidSwapOperation`.
pub mod swap {
    pub const DISABLED: i32 = 1;
    pub const ONGOING: i32 = 2;
    pub const NONE_ONGOING: i32 = 3;
}

/// `InvalidLearnOperation`.
pub mod learn {
    pub const INVALID_LIST: i32 = 1;
}

/// `InvalidCrcOperation` and `InvalidToeplitzHashOperation`.
pub mod calculation {
    pub const INVALID_NAME: i32 = 1;
    pub const WRONG_TYPE: i32 = 2;
}

/// `InvalidIdLookup`.
pub mod lookup {
    pub const INVALID_TYPE: i32 = 0;
    pub const INVALID_NAME: i32 = 1;
}

/// `InvalidMcOperation`.
pub mod replication {
    pub const INVALID_GROUP_ID: i32 = 2;
    pub const INVALID_GROUP: i32 = 3;
    pub const INVALID_NODE: i32 = 4;
    pub const ERROR: i32 = 5;
}

/// `InvalidMirroringOperation`.
pub mod mirroring {
    pub const NOT_FOUND: i32 = 1;
}

/// `InvalidDevMgrOperation`.
pub mod ports {
    pub const ERROR: i32 = 1;
}
