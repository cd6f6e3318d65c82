//! One end of a flow over UDP sockets, for a host of a real network.

use std::net::Ipv4Addr;

use fairlane_endpoint::algorithm::Fault;
use fairlane_endpoint::sources::Stream;
use fairlane_endpoint::{
    check_session, Backlog, End, Life, RawReceiver, RawSender, RawSpec, ReceiverSpec, RtpReceiver, RtpSender, SenderSpec,
};
use fairlane_host::{Addresses, Arrival, Driver, Progress, Role, SocketError, Sockets, Trace};
use pyo3::exceptions::{PyOSError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::algorithm::{breaker, Breaker, PythonHalf};
use crate::records::Log;
use crate::{ipv4, refused, Application};

/// Whom an end talks to, and when. Times are of CLOCK_MONOTONIC; epoch_ns: Unix time of its instant 0. name and seed: of its streams of
/// randomness. base_group: of a flow in layers. wake_fd: a file that interrupts run_until when it can be read. film_fd: a SOCK_SEQPACKET socket to
/// the program that encodes or shows the flow's film. marks_ns: instants at which its sums are recorded exactly.
#[pyclass(frozen)]
#[derive(Clone)]
pub(crate) struct Place {
    local: Ipv4Addr,
    peer: Ipv4Addr,
    port: u16,
    start_ns: u64,
    stop_ns: u64,
    epoch_ns: u64,
    name: String,
    seed: u64,
    base_group: Option<u32>,
    wake_fd: Option<i32>,
    film_fd: Option<i32>,
    arrivals: Option<Vec<Arrival>>,
    marks: Vec<u64>,
}

/// `(time_ns, rtcp, group, payload)`.
type RecordedArrival = (u64, bool, Option<u32>, Vec<u8>);

#[pymethods]
impl Place {
    /// arrivals: `[(time_ns, rtcp, group, payload)]`, what comes to the end: a recorded trace takes the place of sockets and clock. Raises
    /// ValueError.
    #[new]
    #[pyo3(signature = (local, peer, port, *, start_ns, stop_ns, epoch_ns, name, seed, base_group=None, wake_fd=None, film_fd=None, arrivals=None, marks_ns=Vec::new()))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        local: &str,
        peer: &str,
        port: u16,
        start_ns: u64,
        stop_ns: u64,
        epoch_ns: u64,
        name: String,
        seed: u64,
        base_group: Option<&str>,
        wake_fd: Option<i32>,
        film_fd: Option<i32>,
        arrivals: Option<Vec<RecordedArrival>>,
        marks_ns: Vec<u64>,
    ) -> PyResult<Place> {
        let (local, peer) = (ipv4(local)?.into(), ipv4(peer)?.into());
        let base_group = base_group.map(ipv4).transpose()?;
        let arrival = |(at, rtcp, group, payload)| Arrival { at, rtcp, group, ecn: 0, payload };
        let arrivals = arrivals.map(|arrivals| arrivals.into_iter().map(arrival).collect());
        Ok(Place { local, peer, port, start_ns, stop_ns, epoch_ns, name, seed, base_group, wake_fd, film_fd, arrivals, marks: marks_ns })
    }
}

impl Place {
    fn life(&self, peer: u32) -> Life {
        Life { peer, start: self.start_ns, stop: self.stop_ns }
    }

    fn open(&self, sends: bool, end: impl End + 'static) -> PyResult<HostEnd> {
        let role = match (sends, self.base_group) {
            (true, None) => Role::Sender,
            (false, None) => Role::Receiver,
            (true, Some(_)) => Role::LayeredSender,
            (false, Some(_)) => Role::LayeredReceiver,
        };
        let &Place { local, peer, port, wake_fd, film_fd, .. } = self;
        let marks = self.marks.clone();
        let driver = match self.arrivals.clone() {
            None => {
                let sockets = Sockets::open(Addresses { role, local, peer, port, wake: wake_fd, film: film_fd }).map_err(unopened)?;
                Driving::Sockets(Box::new(Driver::new(Box::new(end), sockets, self.epoch_ns, marks)))
            }
            Some(arrivals) => Driving::Trace(Box::new(Driver::new(Box::new(end), Trace::new(arrivals), self.epoch_ns, marks))),
        };
        Ok(HostEnd { driver })
    }
}

fn unopened(error: SocketError) -> PyErr {
    PyOSError::new_err(error.to_string())
}

fn ended(fault: Fault) -> PyErr {
    match fault.downcast::<PyErr>() {
        // The algorithm's own exception, with its traceback.
        Ok(error) => *error,
        Err(fault) => match fault.downcast::<SocketError>() {
            Ok(error) => unopened(*error),
            Err(fault) => PyTypeError::new_err(fault.to_string()),
        },
    }
}

/// One end of a flow, which runs in this thread; made by one of the static methods. They raise ValueError, and OSError for a socket
/// that cannot be opened.
#[pyclass(unsendable)]
pub(crate) struct HostEnd {
    driver: Driving,
}

enum Driving {
    Sockets(Box<Driver<Sockets>>),
    Trace(Box<Driver<Trace>>),
}

macro_rules! driver {
    ($self:expr, $driver:ident => $what:expr) => {
        match &mut $self.driver {
            Driving::Sockets($driver) => $what,
            Driving::Trace($driver) => $what,
        }
    };
}

/// `[(time_ns, address, rtcp, payload)]`
type Sent<'py> = Vec<(u64, u32, bool, Bound<'py, PyBytes>)>;

#[pymethods]
impl HostEnd {
    /// The sending end of a rate-adaptive flow: `algorithm` is the sending half (`fairlane.hosts.algorithms.base`), rng what its handlers are given.
    /// The rest as of Network.add_rtp_flow.
    #[staticmethod]
    #[pyo3(signature = (place, algorithm, rng, *, ssrc, cname, packet_bytes, session_bandwidth_bps, pacing_jitter=0.0, exact_loss=false,
                        report_interval_ns=None, application=None, buffer_packets=100, circuit_breaker=None))]
    #[allow(clippy::too_many_arguments)]
    fn sender(
        py: Python<'_>,
        place: &Place,
        algorithm: Py<PyAny>,
        rng: Py<PyAny>,
        ssrc: u32,
        cname: String,
        packet_bytes: u32,
        session_bandwidth_bps: f64,
        pacing_jitter: f64,
        exact_loss: bool,
        report_interval_ns: Option<u64>,
        application: Option<&Application>,
        buffer_packets: u32,
        circuit_breaker: Option<Breaker>,
    ) -> PyResult<HostEnd> {
        check_session(packet_bytes, application.is_some(), session_bandwidth_bps, pacing_jitter, None).map_err(refused)?;
        let backlog = application.map(|application| {
            let application = fairlane_endpoint::Application { produces: application.produces(), buffer_packets };
            Backlog::new(application, packet_bytes, place.start_ns, place.source()).map_err(refused)
        });
        let spec = SenderSpec {
            name: place.name.clone(),
            packet_bytes,
            session_bandwidth_bps,
            pacing_jitter,
            phase: None,
            exact_loss,
            ssrc,
            cname: cname.into_bytes(),
            layered: place.base_group.is_some(),
            circuit_breaker: circuit_breaker.map(breaker),
            report_interval: report_interval_ns,
        };
        let half = Box::new(PythonHalf::new(py, algorithm, rng)?);
        let life = place.life(place.base_group.unwrap_or(place.peer.into()));
        place.open(true, RtpSender::new(life, spec, half, backlog.transpose()?, place.seed))
    }

    /// The receiving end. acks: whether the sender wants an acknowledgement for each packet. media: whether the sender has an application. film: whether
    /// that is a film. report_interval_ns: as of the sender. rtcp: it runs for the sender's circuit breakers. stream: names its randomness.
    #[staticmethod]
    #[pyo3(signature = (place, algorithm, rng, *, ssrc, cname, session_bandwidth_bps, acks=false, report_interval_ns=None, media=false, film=false,
                        delay_threshold_ns=75_000_000, rtcp=false, stream=None))]
    #[allow(clippy::too_many_arguments)]
    fn receiver(
        py: Python<'_>,
        place: &Place,
        algorithm: Py<PyAny>,
        rng: Py<PyAny>,
        ssrc: u32,
        cname: String,
        session_bandwidth_bps: f64,
        acks: bool,
        report_interval_ns: Option<u64>,
        media: bool,
        film: bool,
        delay_threshold_ns: u64,
        rtcp: bool,
        stream: Option<String>,
    ) -> PyResult<HostEnd> {
        let spec = ReceiverSpec {
            name: place.name.clone(),
            stream: stream.unwrap_or_else(|| format!("flow {} receiver", place.name)),
            session_bandwidth_bps,
            ssrc,
            cname: cname.into_bytes(),
            acks,
            report_interval: report_interval_ns,
            media,
            film,
            delay_threshold: delay_threshold_ns,
            base_group: place.base_group,
            rtcp,
        };
        let half = Box::new(PythonHalf::new(py, algorithm, rng)?);
        place.open(false, RtpReceiver::new(place.life(place.peer.into()), spec, half, place.seed))
    }

    /// The sending end of a flow without feedback: what the application produces leaves at once.
    #[staticmethod]
    #[pyo3(signature = (place, application, *, packet_bytes))]
    fn source(place: &Place, application: &Application, packet_bytes: u32) -> PyResult<HostEnd> {
        let spec = RawSpec { traffic: application.traffic()?, packet_bytes };
        let sender = RawSender::new(place.life(place.peer.into()), spec, place.source()).map_err(refused)?;
        place.open(true, sender)
    }

    /// The receiving end of a flow without feedback.
    #[staticmethod]
    fn sink(place: &Place) -> PyResult<HostEnd> {
        place.open(false, RawReceiver::new(place.life(place.peer.into())))
    }

    /// Runs up to an instant, until wake_fd can be read, or a signal comes; false: the end has nothing left to do. Python runs for what
    /// the algorithm hears, and the interpreter is free for other threads meanwhile. Raises what the algorithm raised, TypeError for an
    /// action that is not for its half, OSError for a group that cannot be joined.
    fn run_until(&mut self, py: Python<'_>, until_ns: u64) -> PyResult<bool> {
        let ran = driver!(self, driver => py.detach(|| driver.run_until(until_ns)));
        ran.map(|progress| progress != Progress::Over).map_err(ended)
    }

    /// Ends at once, with a BYE if that need not wait.
    fn close(&mut self) {
        driver!(self, driver => driver.close());
    }

    /// Takes the records since they were last taken.
    fn take_log(&mut self) -> Log {
        Log(driver!(self, driver => driver.take_log()))
    }

    /// Datagrams that the host refused to send.
    #[getter]
    fn refused_packets(&self) -> u64 {
        match &self.driver {
            Driving::Sockets(driver) => driver.wire().refused,
            Driving::Trace(_) => 0,
        }
    }

    /// What the end of a recorded trace has sent, and which groups it has joined (true) and left, with their instants.
    fn sent<'py>(&self, py: Python<'py>) -> (Sent<'py>, Vec<(u64, u32, bool)>) {
        let Driving::Trace(driver) = &self.driver else { return Default::default() };
        let wire = driver.wire();
        (wire.sent.iter().map(|(at, to, rtcp, payload)| (*at, *to, *rtcp, PyBytes::new(py, payload))).collect(), wire.memberships.clone())
    }
}

impl Place {
    fn source(&self) -> Stream {
        Stream::new(self.seed, &format!("flow {} source", self.name))
    }
}
