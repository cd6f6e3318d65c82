//! The Python module `fairlane.native`: the packet network in virtual time.
//!
//! Python describes the network, runs it as far as it likes, and reads the records. It is called back for feedback, for
//! acknowledgements that change state, for timers, and by the control plane; never for each packet. An exception in a callback
//! ends the run and comes out of `run_until`.

mod algorithm;
mod application;
mod classes;
mod control;
#[cfg(target_os = "linux")]
mod host;
#[cfg(unix)]
mod peers;
mod records;
mod why;
mod wire;

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

use fairlane_device::pipeline::{Observing, Program};
use fairlane_device::rows::{self, Further, PortRows};
use fairlane_device::DeviceConfig;
use fairlane_device::DropCause;
use fairlane_endpoint::record::FlowLog;
use fairlane_endpoint::{Ip, RawSpec};
use fairlane_memory as _;
use fairlane_random::nearest;
use fairlane_virtual::record::{LinkSample, Measured, PortSample, QueueSample};
use fairlane_virtual::{
    Change, FlowKind, HostAddress, Jitter, LayeredSpec, LinkEnd, Options, RtpSpec, RunError, Trace, TraceError, Wanted,
};
use pyo3::exceptions::{PyKeyError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use application::Application;
use classes::{FlowPath, GroupPath, Half, Impairments, LayeredReceiver, Link, Loss, RtpOptions, Session, Spec, Tcp};
use records::Log;

fn refused(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn ended(error: RunError) -> PyErr {
    match error {
        RunError::Build(error) => refused(error),
        RunError::Fault { time, fault } => match fault.downcast::<PyErr>() {
            // The algorithm's own exception, with its traceback.
            Ok(error) => *error,
            Err(fault) => PyRuntimeError::new_err(format!("at {} s: {fault}", time as f64 / 1e9)),
        },
        error @ RunError::File { .. } => PyOSError::new_err(error.to_string()),
    }
}

fn ipv4(text: &str) -> PyResult<u32> {
    text.parse::<std::net::Ipv4Addr>().map(u32::from).map_err(|_| refused(format!("{text:?} is no IPv4 address")))
}

/// An address of a host, as `fairlane_endpoint::ip` has them.
fn address(text: &str) -> PyResult<(Ip, u32)> {
    let address = text.parse().ok().and_then(Ip::host);
    address.ok_or_else(|| refused(format!("{text:?} is no IPv4 address, and no IPv6 address of a network's hosts")))
}

fn mac(text: &str) -> PyResult<[u8; 6]> {
    let bytes: Vec<u8> = text.split(':').map_while(|part| u8::from_str_radix(part, 16).ok()).collect();
    bytes.try_into().map_err(|_| refused(format!("{text:?} is no Ethernet address such as 02:00:00:00:00:01")))
}

/// A network; see the module. Times are integer nanoseconds from the run's beginning.
#[pyclass(unsendable)]
struct Network {
    inner: fairlane_virtual::Network,
    /// Of the switches by number.
    rows: Vec<PortRows>,
    /// Switches are ready to keep a packet's steps (`watch`).
    explains: bool,
    /// Whether some link does.
    fails: bool,
    /// Of one of several partitions: how long it has waited for the others.
    #[cfg(unix)]
    waited: Option<std::rc::Rc<std::cell::Cell<std::time::Duration>>>,
}

impl Network {
    fn follow(&mut self, at: u64, node: &str, port: u32, trace: Result<Trace, TraceError>) -> PyResult<()> {
        let trace = Arc::new(trace.map_err(refused)?);
        self.inner.schedule(at, Change::LinkTrace { from: LinkEnd::new(node, port), trace }).map_err(refused)
    }
}

#[pymethods]
impl Network {
    /// epoch_ns: Unix time of instant 0. control_delay_ns: one way between control plane and switches. record_interval_ns:
    /// between periodic records, 0 for none. end_ns: when the run ends, if that is known: changes and starts of flows after it are
    /// refused, and so is running on. explains: switches are ready for `watch`, and slower.
    #[new]
    #[pyo3(signature = (seed, *, epoch_ns=0, control_delay_ns=1_000_000, record_interval_ns=100_000_000, end_ns=None, explains=false))]
    fn new(seed: u64, epoch_ns: u64, control_delay_ns: u64, record_interval_ns: u64, end_ns: Option<u64>, explains: bool) -> Network {
        let options = Options { seed, epoch: epoch_ns, control_delay: control_delay_ns, record_interval: record_interval_ns, end: end_ns };
        Network {
            inner: fairlane_virtual::Network::new(options),
            rows: Vec::new(),
            explains,
            fails: false,
            #[cfg(unix)]
            waited: None,
        }
    }

    /// Adds a switch; returns its number, by which the control plane calls it. Raises ValueError.
    #[pyo3(signature = (name, device_id, *, cpu_port=None, priorities=1))]
    fn add_switch(&mut self, name: &str, device_id: u64, cpu_port: Option<u32>, priorities: usize) -> PyResult<usize> {
        let observe = if self.explains { Observing::Values } else { Observing::Nothing };
        let config = DeviceConfig { cpu_port, priorities, observe, ..DeviceConfig::default() };
        let number = self.inner.add_switch(name, device_id, config).map_err(refused)?;
        self.rows.push(PortRows::default());
        Ok(number)
    }

    /// Adds a host. Raises ValueError.
    fn add_host(&mut self, name: &str, ip: &str, mac_address: &str, gateway_mac: &str) -> PyResult<()> {
        let (version, ip) = address(ip)?;
        let address = HostAddress { version, ip, mac: mac(mac_address)?, gateway_mac: mac(gateway_mac)? };
        self.inner.add_host(name, address).map(drop).map_err(refused)
    }

    /// Links two nodes; `back` is `there` when left out. Raises ValueError.
    #[pyo3(signature = (a, a_port, b, b_port, there, back=None))]
    fn connect(&mut self, a: &str, a_port: u32, b: &str, b_port: u32, there: Spec<Link>, back: Option<Spec<Link>>) -> PyResult<()> {
        let there = there.0.channel()?;
        let back = back.map_or_else(|| Ok(there.clone()), |back| back.0.channel())?;
        self.inner.connect(&LinkEnd::new(a, a_port), &LinkEnd::new(b, b_port), &there, &back).map_err(refused)
    }

    /// Loads a program into a switch before the run, without control plane. Raises ValueError, KeyError.
    fn load(&mut self, switch: &str, bmv2_json: &str) -> PyResult<()> {
        let program = Arc::new(Program::from_json(bmv2_json).map_err(refused)?);
        let now = self.inner.now();
        let device = self.inner.device(switch).ok_or_else(|| PyKeyError::new_err(format!("no switch {switch:?}")))?;
        device.load(now, program).map_err(refused)
    }

    /// Adds a rate-adaptive flow over RTP. An application that limits it gives the sender's records the kind "application". Raises ValueError.
    #[pyo3(signature = (path, sender, receiver, session, options=None))]
    fn add_rtp_flow(
        &mut self,
        py: Python<'_>,
        path: Spec<FlowPath>,
        sender: Spec<Half>,
        receiver: Spec<Half>,
        session: Spec<Session>,
        options: Option<Spec<RtpOptions>>,
    ) -> PyResult<()> {
        let options = options.map(|options| options.0).unwrap_or_default();
        let (sender, receiver, session) = (sender.0, receiver.0, session.0);
        let spec = RtpSpec {
            application: options.application(),
            delay_threshold: session.delay_threshold_ns,
            circuit_breaker: options.circuit_breaker(),
            sender: sender.python(py)?,
            receiver: receiver.python(py)?,
            packet_bytes: session.packet_bytes,
            session_bandwidth_bps: session.session_bandwidth_bps,
            pacing_jitter: session.pacing_jitter,
            phase: session.phase,
            exact_loss: session.exact_loss,
            report_interval: options.report_interval_ns,
            sender_ssrc: sender.ssrc,
            receiver_ssrc: receiver.ssrc,
            sender_cname: sender.cname,
            receiver_cname: receiver.cname,
        };
        self.inner.add_flow(path.0.flow(FlowKind::Rtp(spec))).map_err(refused)
    }

    /// Adds a rate-adaptive flow in layers, from one host to several (`fairlane.hosts.algorithms.base`: SetLayers, JoinLayers). Layer k is an
    /// RTP stream of the sender's SSRC + k to its group; control packets go to the base group, of which every receiver is
    /// a member from its start and which is the first of every SetLayers. Receivers report to the sender's address; their hosts
    /// say joins and leaves in IGMPv2 (RFC 2236). Raises ValueError.
    fn add_layered_flow(
        &mut self,
        py: Python<'_>,
        path: Spec<GroupPath>,
        sender: Spec<Half>,
        receivers: Vec<Spec<LayeredReceiver>>,
        session: Spec<Session>,
    ) -> PyResult<()> {
        let (path, sender, session) = (path.0, sender.0, session.0);
        let spec = LayeredSpec {
            name: path.name,
            sender: path.sender_host,
            algorithm: sender.python(py)?,
            receivers: receivers.into_iter().map(|receiver| receiver.0.member(py)).collect::<PyResult<_>>()?,
            base_group: ipv4(&path.base_group)?,
            port: path.port,
            start: path.start_ns,
            stop: path.stop_ns,
            packet_bytes: session.packet_bytes,
            session_bandwidth_bps: session.session_bandwidth_bps,
            pacing_jitter: session.pacing_jitter,
            phase: session.phase,
            exact_loss: session.exact_loss,
            delay_threshold: session.delay_threshold_ns,
            sender_ssrc: sender.ssrc,
            sender_cname: sender.cname,
        };
        self.inner.add_layered_flow(spec).map_err(refused)
    }

    /// Adds a bulk TCP flow. Raises ValueError.
    fn add_tcp_flow(&mut self, path: Spec<FlowPath>, tcp: Spec<Tcp<'_>>) -> PyResult<()> {
        let kind = tcp.0.kind(self.inner.ip())?;
        self.inner.add_flow(path.0.flow(kind)).map_err(refused)
    }

    /// Adds a flow of datagrams without feedback: what the application produces leaves at once, in datagrams of at most packet_bytes.
    /// Raises ValueError.
    #[pyo3(signature = (path, application, *, packet_bytes))]
    fn add_source_flow(&mut self, path: Spec<FlowPath>, application: &Application, packet_bytes: u32) -> PyResult<()> {
        let kind = FlowKind::Raw(RawSpec { traffic: application.traffic()?, packet_bytes });
        self.inner.add_flow(path.0.flow(kind)).map_err(refused)
    }

    /// Lets a TCP flow start delay_ns after the last of other flows is over, and not before its own start. Raises ValueError.
    fn start_after(&mut self, name: &str, after: Vec<String>, delay_ns: u64) -> PyResult<()> {
        self.inner.start_after(name, &after, delay_ns).map_err(refused)
    }

    /// Lets a flow stop at another instant than planned, which may be now. Raises ValueError.
    fn stop_flow(&mut self, name: &str, at_ns: u64) -> PyResult<()> {
        self.inner.stop_flow(name, at_ns).map_err(refused)
    }

    /// Plans a new rate of one direction of a link, named by the end that sends. Raises ValueError.
    fn schedule_rate(&mut self, at_ns: u64, node: &str, port: u32, rate_bps: Option<u64>) -> PyResult<()> {
        self.inner.schedule(at_ns, Change::LinkRate { from: LinkEnd::new(node, port), rate_bps }).map_err(refused)
    }

    /// Plans a new propagation delay of one direction of a link. Raises ValueError.
    fn schedule_delay(&mut self, at_ns: u64, node: &str, port: u32, delay_ns: u64) -> PyResult<()> {
        self.inner.schedule(at_ns, Change::LinkDelay { from: LinkEnd::new(node, port), delay_ns }).map_err(refused)
    }

    /// Plans another loss of one direction of a link (as of Link; None: no loss), for frames sent from then on. Raises ValueError.
    fn schedule_loss(&mut self, at_ns: u64, node: &str, port: u32, loss: Option<Loss>) -> PyResult<()> {
        let loss = loss.map(|Loss(model)| model);
        self.inner.schedule(at_ns, Change::LinkLoss { from: LinkEnd::new(node, port), loss }).map_err(refused)
    }

    /// Plans that one direction of a link fails, or works again: frames that wait or are on the way are lost, and all that follow until then. Raises ValueError.
    fn schedule_state(&mut self, at_ns: u64, node: &str, port: u32, up: bool) -> PyResult<()> {
        self.fails = true;
        self.inner.schedule(at_ns, Change::LinkState { from: LinkEnd::new(node, port), up }).map_err(refused)
    }

    /// Plans another jitter of one direction of a link (as of Link), for frames sent from then on. Raises ValueError.
    #[pyo3(signature = (at_ns, node, port, jitter_ns, jitter_std_ns=0))]
    fn schedule_jitter(&mut self, at_ns: u64, node: &str, port: u32, jitter_ns: u64, jitter_std_ns: u64) -> PyResult<()> {
        let jitter = Jitter::of(jitter_ns, jitter_std_ns);
        self.inner.schedule(at_ns, Change::LinkJitter { from: LinkEnd::new(node, port), jitter }).map_err(refused)
    }

    /// Plans other impairments of one direction of a link, for frames sent from then on. Raises ValueError.
    fn schedule_impairments(&mut self, at_ns: u64, node: &str, port: u32, change: Spec<Impairments>) -> PyResult<()> {
        let change = change.0.change();
        self.inner.schedule(at_ns, Change::LinkImpairments { from: LinkEnd::new(node, port), change }).map_err(refused)
    }

    /// From an instant on, one direction of a link follows a trace that begins then: instants at each of which so many bytes may leave,
    /// repeated after the last. Raises ValueError.
    fn schedule_opportunities(&mut self, at_ns: u64, node: &str, port: u32, opportunities_ns: Vec<u64>, bytes: u32) -> PyResult<()> {
        self.follow(at_ns, node, port, Trace::opportunities(opportunities_ns, bytes))
    }

    /// The same with rates in bit/s, each from an instant on; the last one lasts. Raises ValueError.
    fn schedule_rates(&mut self, at_ns: u64, node: &str, port: u32, rates: Vec<(u64, u64)>) -> PyResult<()> {
        self.follow(at_ns, node, port, Trace::rates(rates))
    }

    /// Plans that a host sends a frame, with its Ethernet header, as a program with a raw socket does. Raises ValueError.
    fn schedule_frame(&mut self, at_ns: u64, host: &str, frame: Vec<u8>) -> PyResult<()> {
        self.inner.schedule(at_ns, Change::Frame { from: LinkEnd::new(host, 0), frame }).map_err(refused)
    }

    /// Who controls the switches: an object with on_start, on_timer, on_answer and on_stream (see `fairlane.fabrics.virtual_control`).
    fn set_control_plane(&mut self, py: Python<'_>, plane: Py<PyAny>) -> PyResult<()> {
        self.inner.set_control_plane(Box::new(control::PythonControl::new(py, plane)?));
        Ok(())
    }

    /// Calls the control plane's on_timer at an instant, as if it had asked for that itself. Raises ValueError.
    fn wake_control_plane(&mut self, at_ns: u64, id: u64) -> PyResult<()> {
        self.inner.wake_control_plane(at_ns, id).map_err(refused)
    }

    /// Makes this the partition `own` of several, each in a process of its own: homes has the partition of each switch by its number, and hosts are
    /// where their switch is. All have the same description, and nothing is added afterwards. peers: a `Mesh`, made before the processes parted, or an object whose
    /// `exchange` reaches the others (`peers.rs`). Records are then those of what is simulated here. Raises ValueError where the network cannot be divided so.
    #[cfg(unix)]
    fn partition(&mut self, own: usize, homes: Vec<usize>, peers: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(mesh) = peers.downcast::<peers::Mesh>() {
            let sockets = mesh.borrow_mut().take(own)?;
            self.waited = Some(std::rc::Rc::clone(&sockets.waited));
            return self.inner.partition(own, &homes, Box::new(sockets)).map_err(refused);
        }
        let called = peers::Called { object: peers.clone().unbind(), waited: std::rc::Rc::default() };
        self.waited = Some(std::rc::Rc::clone(&called.waited));
        self.inner.partition(own, &homes, Box::new(called)).map_err(refused)
    }

    /// Of a partition: windows; frames, bytes and messages that went to others; lookahead_ns; waited_s, for others. Empty where the network is whole.
    #[cfg(unix)]
    fn partition_counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        if let (Some(counts), Some(waited)) = (self.inner.partition_counts(), &self.waited) {
            dict.set_item("windows", counts.windows)?;
            dict.set_item("frames", counts.frames)?;
            dict.set_item("bytes", counts.bytes)?;
            dict.set_item("messages", counts.messages)?;
            dict.set_item("lookahead_ns", counts.lookahead)?;
            dict.set_item("waited_s", waited.get().as_secs_f64())?;
        }
        Ok(dict)
    }

    /// Instants at which, too, all that ports and ends have counted is recorded, before anything else that happens then. Raises ValueError.
    fn mark(&mut self, at_ns: Vec<u64>) -> PyResult<()> {
        self.inner.mark(at_ns).map_err(refused)
    }

    /// Captures every link, a file for each direction. Raises OSError.
    fn capture(&mut self, directory: PathBuf) -> PyResult<()> {
        self.inner.capture(&directory).map_err(ended)
    }

    /// Logs each packet at each queue. Raises OSError.
    fn trace(&mut self, path: PathBuf) -> PyResult<()> {
        self.inner.trace(&path).map_err(ended)
    }

    /// Records each packet's stay in a queue of a switch, a row of `PACKET_COLUMNS`. Times count from an instant. only: (switch, port) of the queues; None
    /// for all. Raises OSError, and ValueError for a port without link.
    #[pyo3(signature = (path, origin_ns, only=None))]
    fn record_packets(&mut self, path: PathBuf, origin_ns: u64, only: Option<Vec<(String, u32)>>) -> PyResult<()> {
        let only: Option<Vec<_>> = only.map(|ends| ends.iter().map(|(node, port)| LinkEnd::new(node, *port)).collect());
        self.inner.record_packets(&path, origin_ns, only.as_deref()).map_err(ended)
    }

    /// Measures from now on how long packets wait in the switches' queues, their one-way delays, and round trips, as far as they leave the queue, arrive,
    /// or are acknowledged from one instant to another. What was measured before is forgotten.
    fn measure_delays(&mut self, from_ns: u64, to_ns: u64) {
        self.inner.measure_delays(from_ns, to_ns);
    }

    /// What `measure_delays` asked for: `("wait", switch's number, port, queue, text)`, `("round_trip", flow's number, 0, 0, text)` and `("one_way",
    /// flow's number, receiver's number, 0, text)`. text: members of a JSON object, see `records.rs`.
    fn delays(&mut self) -> Vec<(&'static str, usize, u32, usize, String)> {
        let found = self.inner.delays().into_iter().map(|(of, delays)| {
            let text = records::delays(&delays);
            match of {
                Measured::Wait { switch, port, priority } => ("wait", switch, port, priority, text),
                Measured::RoundTrip { flow } => ("round_trip", flow, 0, 0, text),
                Measured::OneWay { flow, receiver } => ("one_way", flow, receiver as u32, 0, text),
            }
        });
        found.collect()
    }

    /// Runs all that happens up to and at an instant. Raises what a callback raised; ValueError for a network that cannot be run.
    fn run_until(&mut self, end_ns: u64) -> PyResult<()> {
        self.inner.run_until(end_ns).map_err(ended)
    }

    /// The instant up to which it has run.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.inner.now()
    }

    /// Takes the records of a flow since they were last taken: a log of the sender and one of the (first) receiver. Raises KeyError.
    fn take_flow_logs(&mut self, flow: &str) -> PyResult<(Log, Log)> {
        let (sender, receiver) = self.take_logs(flow)?;
        let receiver = receiver.into_iter().next().map(|(_, log)| log).unwrap_or_default();
        Ok((Log(sender), Log(receiver)))
    }

    /// Takes the records of a layered flow since they were last taken: the log of the sender, and of each receiver by its host.
    /// Raises KeyError.
    fn take_layered_logs(&mut self, flow: &str) -> PyResult<(Log, HashMap<String, Log>)> {
        let (sender, receivers) = self.take_logs(flow)?;
        Ok((Log(sender), receivers.into_iter().map(|(host, log)| (host, Log(log))).collect()))
    }

    /// Takes what the ports of all switches had counted at the end of each interval since it was last taken: of each switch, in the order
    /// in which they were added, the lines of its CSV (`port_columns`). only: switches by number and their ports; None for all.
    #[pyo3(signature = (only=None))]
    fn take_port_rows(&mut self, only: Option<HashSet<(usize, u32)>>) -> Vec<String> {
        let mut texts = vec![String::new(); self.rows.len()];
        let corrupts = self.inner.corrupts();
        for PortSample { time, switch, port } in self.inner.take_port_samples() {
            if only.as_ref().is_none_or(|only| only.contains(&(switch, port.port))) {
                let counts = [(port.wrong_checksums, corrupts), (port.drops.get(DropCause::LinkDown), self.fails)];
                let counts: Vec<u64> = counts.into_iter().filter_map(|(count, has)| has.then_some(count)).collect();
                let further = Further { counts: &counts, ..Further::default() };
                self.rows[switch].write(&mut texts[switch], time, time, &port, further);
            }
        }
        texts
    }

    /// The same of ports with several queues, queue by queue (`QUEUE_COLUMNS`).
    #[pyo3(signature = (only=None))]
    fn take_queue_rows(&mut self, only: Option<HashSet<(usize, u32)>>) -> Vec<String> {
        let mut texts = vec![String::new(); self.rows.len()];
        for QueueSample { time, switch, port, priority, queue } in self.inner.take_queue_samples() {
            if only.as_ref().is_none_or(|only| only.contains(&(switch, port))) {
                rows::write_queue(&mut texts[switch], time, time, port, priority, &queue);
            }
        }
        texts
    }

    /// The columns of a switch's CSV: `PORT_COLUMNS`, those with wrong checksums where links corrupt frames, and where links fail what is lost by that.
    fn port_columns(&self) -> String {
        let further = [(rows::WRONG_CHECKSUMS, self.inner.corrupts()), (rows::LINK_DOWN, self.fails)];
        rows::header(further.into_iter().filter_map(|(name, has)| has.then_some(name))).trim_end().to_string()
    }

    /// The same of the directions of links that lose or impair frames at some time, of all links in one text (`LINK_COLUMNS`).
    fn take_link_rows(&mut self) -> String {
        let mut text = String::new();
        for LinkSample { time, link, counts } in self.inner.take_link_samples() {
            let name = self.inner.link_name(link).map_or_else(String::new, |(from, to)| format!("{from}->{to}"));
            rows::write_link(&mut text, time, time, &name, counts.on_the_way());
        }
        text
    }

    /// Datagrams that a host dropped for a wrong checksum of IPv4, UDP or TCP; None where no link corrupts frames. Raises KeyError.
    fn wrong_checksums(&self, host: &str) -> PyResult<Option<u64>> {
        let count = self.inner.wrong_checksums(host).ok_or_else(|| PyKeyError::new_err(format!("no host {host:?}")))?;
        Ok(self.inner.corrupts().then_some(count))
    }

    /// Bit/s that a port sent, and mean packets in its queue, in the interval of the last row that was taken; None before it.
    fn port_interval(&self, switch: usize, port: u32) -> Option<(f64, f64)> {
        self.rows.get(switch)?.last(port).map(|interval| (interval.rate_bps, interval.queue_packets))
    }

    /// Of what `take_port_rows` has not taken yet, the samples from `first_ns` on at multiples of `step_ns`, packed by port; see
    /// `records.rs`. Raises ValueError when `step_ns` is 0.
    fn port_sums<'py>(&self, py: Python<'py>, first_ns: u64, step_ns: u64) -> PyResult<Vec<(usize, u32, Bound<'py, PyBytes>)>> {
        let step = NonZeroU64::new(step_ns).ok_or_else(|| refused("step_ns: 0"))?;
        Ok(records::port_sums(py, self.inner.port_samples(), first_ns, step))
    }

    /// Cells of a register of a switch's program, in the order of `indices`; reading changes nothing. Raises KeyError for a switch or
    /// register that is not there, ValueError for an index beyond its size or a value beyond 64 bits.
    fn read_register(&mut self, switch: &str, register: &str, indices: Vec<usize>) -> PyResult<Vec<u64>> {
        let device = self.inner.device(switch).ok_or_else(|| PyKeyError::new_err(format!("no switch {switch:?}")))?;
        let pipeline = device.switch().ok_or_else(|| PyKeyError::new_err(format!("switch {switch:?} has no program")))?;
        let id = pipeline.program().register_by_name(register);
        let id = id.ok_or_else(|| PyKeyError::new_err(format!("no register {register:?} in the program of {switch:?}")))?;
        let cell = |index: usize| {
            let value = pipeline.register_read(id, index).map_err(refused)?;
            let bytes = value.as_bytes();
            if bytes.len() > 8 {
                return Err(refused(format!("{register}[{index}] has more than 64 bits")));
            }
            Ok(bytes.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
        };
        indices.into_iter().map(cell).collect()
    }

    /// Looks from now on for a packet that is dropped: the one after `before` others, of a flow of that name and for that cause (of DROP_CAUSES, "link" or "tail"), where they are given.
    #[pyo3(signature = (flow=None, cause=None, before=0))]
    fn search_drop(&mut self, flow: Option<&str>, cause: Option<&str>, before: u64) {
        self.inner.search_drop(flow, cause, before);
    }

    /// What `search_drop` has found: (time_ns, node, cause, flow, part, back, number).
    #[allow(clippy::type_complexity)] // Python's tuple
    fn found_drop(&self) -> Option<(u64, String, String, String, String, bool, Option<u64>)> {
        let found = self.inner.found_drop()?.clone();
        let Wanted { flow, part, back, number, .. } = found.packet;
        Some((found.time, found.node, found.cause, flow, part, back, number))
    }

    /// Follows a packet from now on, of a network that explains: flow, part, direction and number as the log of packets has them.
    /// before: the sendings of such a packet before it.
    #[pyo3(signature = (flow, part, number, *, back=false, before=0))]
    fn watch(&mut self, flow: String, part: String, number: Option<u64>, back: bool, before: u64) {
        self.inner.watch(Wanted { flow, part, back, number, before });
    }

    /// Where the packet of `watch` was, as JSON: an array of stations (docs/why.md). root: the folder from which the names of programs' files count.
    fn way(&self, root: PathBuf) -> String {
        why::way(&self.inner, &root)
    }

    /// How many stations `way` would have.
    fn stations(&self) -> usize {
        self.inner.way().count()
    }

    /// `[(from, to, offered, delivered, delivered_bytes, dropped_tail, dropped_loss, in_flight)]` of each direction of a link.
    fn channel_stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = self.inner.channel_stats().map(|(from, to, stats, in_flight)| {
            let counts = (stats.offered_packets, stats.delivered_packets, stats.delivered_bytes);
            (from, to, counts.0, counts.1, counts.2, stats.dropped_tail, stats.dropped_loss, in_flight)
        });
        PyList::new(py, rows.collect::<Vec<_>>())
    }

    /// Counts of the simulation itself: events, link_traversals, switch_packets, data_packets.
    fn work<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (work, dict) = (self.inner.work(), PyDict::new(py));
        dict.set_item("events", work.events)?;
        dict.set_item("link_traversals", work.link_traversals)?;
        dict.set_item("switch_packets", work.switch_packets)?;
        dict.set_item("data_packets", work.data_packets)?;
        Ok(dict)
    }
}

impl Network {
    fn take_logs(&mut self, flow: &str) -> PyResult<(FlowLog, Vec<(String, FlowLog)>)> {
        let number = self.inner.flow_number(flow);
        let logs = number.and_then(|number| self.inner.take_logs(number));
        logs.ok_or_else(|| PyKeyError::new_err(format!("no flow {flow:?}")))
    }
}

/// A P4_16 program as BMv2 JSON and P4Info in text, None where it has errors; and the compiler's messages.
#[pyfunction]
#[pyo3(signature = (program, *, include=Vec::new(), define=Vec::new()))]
fn compile(program: PathBuf, include: Vec<PathBuf>, define: Vec<String>) -> (Option<String>, Option<String>, String) {
    let options = fairlane_compiler::Options { include, define, ..Default::default() };
    let outcome = fairlane_compiler::compile(&program, &options);
    (outcome.json.map(|json| format!("{json:#}\n")), outcome.p4info, outcome.rendered)
}

/// Plays a packet test against a program, P4 or BMv2 JSON: whether it passes, and what `fairlane-stf` prints. verbose: also what reading
/// commands and log_msg say. Raises ValueError, with file and line, when one of the two cannot be read.
#[pyfunction]
#[pyo3(signature = (program, test, *, verbose=false))]
fn packet_test(program: PathBuf, test: PathBuf, verbose: bool) -> PyResult<(bool, String)> {
    let played = fairlane_stf::play_files(&program, &test, &fairlane_compiler::Options::default()).map_err(refused)?;
    Ok((played.passed(), played.text(verbose)))
}

/// Why a packet of a script, counted from 1, took its way through a program, P4 or BMv2 JSON: JSON with its line, port, frame, steps and the frames
/// that came out (docs/why.md). name: of the script, for errors. Raises ValueError, with file and line, when one of the two cannot be read.
#[pyfunction]
#[pyo3(signature = (program, script, packet, *, name, include=Vec::new(), define=Vec::new()))]
fn why_packet(program: PathBuf, script: &str, packet: usize, name: &str, include: Vec<PathBuf>, define: Vec<String>) -> PyResult<String> {
    let options = fairlane_compiler::Options { include, define, ..Default::default() };
    let program = fairlane_stf::load(&program, &options).map_err(refused)?;
    let script = fairlane_stf::read(script).map_err(|error| refused(format!("{name}:{}: {}", error.line, error.message)))?;
    let found = fairlane_stf::why(&program, &script, packet);
    found.map(|found| found.to_string()).map_err(|error| refused(format!("{name}:{}: {}", error.line, error.message)))
}

/// e^x, ln x and base^exponent, rounded to the nearest number; None where that takes more digits (`fairlane.arithmetic`).
#[pyfunction]
fn exp(x: f64) -> Option<f64> {
    nearest::exp(x)
}

#[pyfunction]
fn ln(x: f64) -> Option<f64> {
    nearest::ln(x)
}

#[pyfunction]
fn power(base: f64, exponent: f64) -> Option<f64> {
    nearest::power(base, exponent)
}

/// Runs a fuzz target on an input; a fault ends the module. Raises ValueError for a target that there is not.
#[cfg(feature = "fuzz")]
#[pyfunction]
fn fuzz(target: &str, data: &[u8]) -> PyResult<()> {
    let found = fairlane_fuzz_targets::find(target)
        .ok_or_else(|| refused(format!("no target {target}: there are {}", fairlane_fuzz_targets::names())))?;
    (found.run)(data);
    Ok(())
}

#[pymodule]
#[pyo3(name = "native")]
fn python_module(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Network>()?;
    module.add_class::<Application>()?;
    #[cfg(unix)]
    module.add_class::<peers::Mesh>()?;
    #[cfg(target_os = "linux")]
    module.add_class::<host::HostEnd>()?;
    module.add_function(wrap_pyfunction!(compile, module)?)?;
    module.add_function(wrap_pyfunction!(packet_test, module)?)?;
    module.add_function(wrap_pyfunction!(why_packet, module)?)?;
    module.add_function(wrap_pyfunction!(exp, module)?)?;
    module.add_function(wrap_pyfunction!(ln, module)?)?;
    module.add_function(wrap_pyfunction!(power, module)?)?;
    #[cfg(feature = "fuzz")]
    module.add_function(wrap_pyfunction!(fuzz, module)?)?;
    module.add_class::<Log>()?;
    wire::add(module)?;
    control::add(module)?;
    module.add("DROP_CAUSES", records::drop_causes())?;
    module.add("PACKET_COLUMNS", fairlane_virtual::PACKET_COLUMNS)?;
    module.add("LINK_COLUMNS", rows::LINK_HEADER.trim_end())?;
    module.add("QUEUE_COLUMNS", rows::QUEUE_HEADER.trim_end())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    Ok(())
}
