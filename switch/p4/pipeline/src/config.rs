//! How a switch is set up.

use crate::{Observing, PortId};

/// When a switch runs a program as machine code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineCode {
    /// Once some packets have come: a thread translates the program meanwhile.
    Auto,
    /// From the first packet.
    Always,
    /// Never: everything is interpreted.
    Never,
}

impl MachineCode {
    /// The variable that chooses for switches that are not told: `auto`, `always` or `never`.
    pub const VARIABLE: &'static str = "FAIRLANE_MACHINE_CODE";

    fn from_environment() -> MachineCode {
        match std::env::var(MachineCode::VARIABLE).as_deref() {
            Ok("always") => MachineCode::Always,
            Ok("never") => MachineCode::Never,
            _ => MachineCode::Auto,
        }
    }
}

/// How a switch is set up.
#[derive(Debug, Clone)]
pub struct SwitchConfig {
    /// `egress_spec` that means drop; 511 in v1model.
    pub drop_port: PortId,
    /// The port of packet-in and packet-out, when there is one. Frames for it are emitted like for any port.
    pub cpu_port: Option<PortId>,
    /// Seed of `random()`.
    pub seed: u64,
    /// Priority queues per port; a packet whose priority is not below this is dropped, as in BMv2.
    pub priorities: u32,
    /// How often one packet may be resubmitted or recirculated before it is dropped.
    pub max_passes: u32,
    /// Most parser states one packet may go through.
    pub max_parser_states: u32,
    /// Digests kept until taken; more are lost and counted.
    pub max_digests: usize,
    /// Keep `log_msg` lines for [`crate::Switch::take_log`].
    pub log: bool,
    /// Be ready for [`crate::Switch::set_observing`]: programs are loaded without some shortcuts.
    pub observe: Observing,
    /// What comes out is the same either way.
    pub machine_code: MachineCode,
}

impl Default for SwitchConfig {
    fn default() -> Self {
        SwitchConfig {
            drop_port: 511,
            cpu_port: None,
            seed: 0,
            priorities: 8,
            max_passes: 64,
            max_parser_states: 4096,
            max_digests: 65536,
            log: false,
            observe: Observing::Nothing,
            machine_code: MachineCode::from_environment(),
        }
    }
}
