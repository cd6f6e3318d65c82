//! One end of a flow over UDP sockets, for a host of a real network.

use std::os::fd::BorrowedFd;

use fairlane_endpoint::algorithm::Fault;
use fairlane_endpoint::{
    check_session, Backlog, End, Ip, Life, RawReceiver, RawSender, RawSpec, ReceiverSpec, RtpReceiver, RtpSender, SenderSpec,
};
use fairlane_host::{Addresses, Arrival, Driver, Progress, Role, SocketError, Sockets, Trace};
use fairlane_random::Stream;
use pyo3::exceptions::{PyOSError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::application::Application;
use crate::classes::{self, Half, Reception, RtpOptions, Session, Spec};
use crate::records::Log;
use crate::{address, ipv4, refused};

/// A `classes::Place` whose addresses were read.
struct Place {
    ip: Ip,
    local: u32,
    peer: u32,
    base_group: Option<u32>,
    given: classes::Place,
}

impl Place {
    /// Raises ValueError.
    fn of(given: Spec<classes::Place>) -> PyResult<Place> {
        let given = given.0;
        let ((ip, local), (other, peer)) = (address(&given.local)?, address(&given.peer)?);
        if other != ip {
            return Err(refused(format!("{} and {} are addresses of two versions of IP", given.local, given.peer)));
        }
        Ok(Place { ip, local, peer, base_group: given.base_group.as_deref().map(ipv4).transpose()?, given })
    }

    /// Of an end that talks to `peer`.
    fn life(&self, peer: u32) -> Life {
        Life { peer, ip: self.ip, start: self.given.start_ns, stop: self.given.stop_ns }
    }

    fn source(&self) -> Stream {
        Stream::new(self.given.seed, &format!("flow {} source", self.given.name))
    }

    fn open(self, sends: bool, end: impl End + 'static) -> PyResult<HostEnd> {
        let role = match (sends, self.base_group) {
            (true, None) => Role::Sender,
            (false, None) => Role::Receiver,
            (true, Some(_)) => Role::LayeredSender,
            (false, Some(_)) => Role::LayeredReceiver,
        };
        let Place {
            ip, local, peer, given: classes::Place { port, wake_fd: wake, film_fd: film, epoch_ns, marks_ns, arrivals, .. }, ..
        } = self;
        let driver = match arrivals {
            None => {
                let (wake, film) = (wake.map(kept).transpose()?, film.map(kept).transpose()?);
                let sockets = Sockets::open(Addresses { role, ip, local, peer, port, wake, film }).map_err(unopened)?;
                Driving::Sockets(Box::new(Driver::new(Box::new(end), sockets, epoch_ns, marks_ns)))
            }
            Some(arrivals) => {
                let arrival = |(at, rtcp, group, payload)| Arrival { at, rtcp, group, ecn: 0, payload };
                let trace = Trace::new(arrivals.into_iter().map(arrival).collect());
                Driving::Trace(Box::new(Driver::new(Box::new(end), trace, epoch_ns, marks_ns)))
            }
        };
        Ok(HostEnd { driver })
    }
}

/// A descriptor that Python keeps open as long as the end lives. Raises ValueError.
#[allow(unsafe_code)]
fn kept(fd: i32) -> PyResult<BorrowedFd<'static>> {
    if fd < 0 {
        return Err(refused(format!("{fd} is no file descriptor")));
    }
    // SAFETY: it is not -1, and whoever makes the end keeps it open (`Place`); were it closed, the end's calls would fail.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
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
    /// The sending end of a rate-adaptive flow.
    #[staticmethod]
    #[pyo3(signature = (place, half, session, options=None))]
    fn sender(
        py: Python<'_>,
        place: Spec<classes::Place>,
        half: Spec<Half>,
        session: Spec<Session>,
        options: Option<Spec<RtpOptions>>,
    ) -> PyResult<HostEnd> {
        let (place, half, session) = (Place::of(place)?, half.0, session.0);
        let options = options.map(|options| options.0).unwrap_or_default();
        let Session { packet_bytes, session_bandwidth_bps, pacing_jitter, phase, exact_loss, .. } = session;
        let application = options.application();
        check_session(place.ip, packet_bytes, application.is_some(), session_bandwidth_bps, pacing_jitter, phase).map_err(refused)?;
        let backlog = application
            .map(|application| Backlog::new(application, place.ip, packet_bytes, place.given.start_ns, place.source()).map_err(refused))
            .transpose()?;
        let algorithm = half.python(py)?;
        let spec = SenderSpec {
            name: place.given.name.clone(),
            packet_bytes,
            session_bandwidth_bps,
            pacing_jitter,
            phase,
            exact_loss,
            ssrc: half.ssrc,
            cname: half.cname.into_bytes(),
            layered: place.base_group.is_some(),
            circuit_breaker: options.circuit_breaker(),
            report_interval: options.report_interval_ns,
        };
        let end = RtpSender::new(place.life(place.base_group.unwrap_or(place.peer)), spec, algorithm, backlog, place.given.seed);
        place.open(true, end)
    }

    /// The receiving end.
    #[staticmethod]
    fn receiver(py: Python<'_>, place: Spec<classes::Place>, half: Spec<Half>, reception: Spec<Reception>) -> PyResult<HostEnd> {
        let (place, half, reception) = (Place::of(place)?, half.0, reception.0);
        let algorithm = half.python(py)?;
        let spec = ReceiverSpec {
            name: place.given.name.clone(),
            stream: reception.stream.unwrap_or_else(|| format!("flow {} receiver", place.given.name)),
            session_bandwidth_bps: reception.session_bandwidth_bps,
            ssrc: half.ssrc,
            cname: half.cname.into_bytes(),
            acks: reception.acks,
            report_interval: reception.report_interval_ns,
            media: reception.media,
            film: reception.film,
            delay_threshold: reception.delay_threshold_ns,
            base_group: place.base_group,
            rtcp: reception.rtcp,
        };
        let end = RtpReceiver::new(place.life(place.peer), spec, algorithm, place.given.seed);
        place.open(false, end)
    }

    /// The sending end of a flow without feedback: what the application produces leaves at once.
    #[staticmethod]
    #[pyo3(signature = (place, application, *, packet_bytes))]
    fn source(place: Spec<classes::Place>, application: &Application, packet_bytes: u32) -> PyResult<HostEnd> {
        let place = Place::of(place)?;
        let spec = RawSpec { traffic: application.traffic()?, packet_bytes };
        let sender = RawSender::new(place.life(place.peer), spec, place.source()).map_err(refused)?;
        place.open(true, sender)
    }

    /// The receiving end of a flow without feedback.
    #[staticmethod]
    fn sink(place: Spec<classes::Place>) -> PyResult<HostEnd> {
        let place = Place::of(place)?;
        let end = RawReceiver::new(place.life(place.peer));
        place.open(false, end)
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
