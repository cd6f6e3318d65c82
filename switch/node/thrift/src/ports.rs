//! The interfaces of a switch, which are not the device's: whoever owns them serves this.

use fairlane_device::PortId;

/// A port with its interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortInfo {
    pub number: PortId,
    /// The interface's name.
    pub interface: String,
    /// Frames can flow.
    pub up: bool,
}

/// Lists, adds and removes ports while the switch runs. Called on threads that may wait.
pub trait Ports: Send + Sync + 'static {
    /// All ports, by number.
    fn list(&self) -> Vec<PortInfo>;

    /// Attaches an interface as a port; `pcap` is the directory of its captures.
    ///
    /// # Errors
    /// A sentence that says why not.
    fn add(&self, number: PortId, interface: &str, pcap: Option<&str>) -> Result<(), String>;

    /// Detaches a port's interface.
    ///
    /// # Errors
    /// A sentence that says why not.
    fn remove(&self, number: PortId) -> Result<(), String>;
}

/// A switch without interfaces.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPorts;

impl Ports for NoPorts {
    fn list(&self) -> Vec<PortInfo> {
        Vec::new()
    }

    fn add(&self, number: PortId, _: &str, _: Option<&str>) -> Result<(), String> {
        Err(format!("port {number}: this switch has no interfaces"))
    }

    fn remove(&self, number: PortId) -> Result<(), String> {
        Err(format!("port {number}: this switch has no interfaces"))
    }
}
