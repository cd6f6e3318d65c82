//! Python algorithms behind the network's traits: `fairlane.hosts.algorithms.base` on one side, `fairlane_endpoint::algorithm` on the other.

use std::ops::Range;

use fairlane_endpoint::algorithm::{
    Ack, AckDetail, Action, Actions, Control, Fault, Feedback, Gap, Interests, Layer, Loss, LossCause, LossTimeout, NoteValue, PathState,
    ReceiverAlgorithm, ReceptionState, SenderAlgorithm,
};
use fairlane_endpoint::header::{OwnHeader, Place, Quantity};
use fairlane_endpoint::seconds;
use fairlane_virtual::Nanos;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyInt, PyString, PyTuple};

/// The classes of `fairlane.hosts.algorithms.base` that events and actions are made of.
struct Classes {
    feedback: Py<PyAny>,
    timer: Py<PyAny>,
    path_state: Py<PyAny>,
    ack: Py<PyAny>,
    loss: Py<PyAny>,
    loss_gap: Py<PyAny>,
    loss_timeout: Py<PyAny>,
    layer: Py<PyAny>,
    control: Py<PyAny>,
    reception_state: Py<PyAny>,
    gap: Py<PyAny>,
    set_rate: Py<PyAny>,
    set_window: Py<PyAny>,
    set_encoder_rate: Py<PyAny>,
    set_loss_timeout: Py<PyAny>,
    set_control: Py<PyAny>,
    stamp_data: Py<PyAny>,
    set_header: Py<PyAny>,
    /// `Receiver.fold`.
    keep_last: Py<PyAny>,
    set_report: Py<PyAny>,
    send_feedback: Py<PyAny>,
    set_layers: Py<PyAny>,
    join_layers: Py<PyAny>,
    set_timer: Py<PyAny>,
    cancel_timer: Py<PyAny>,
    note: Py<PyAny>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

impl Classes {
    fn import(py: Python<'_>) -> PyResult<Classes> {
        let base = py.import("fairlane.hosts.algorithms.base")?;
        let class = |name: &str| base.getattr(name).map(Bound::unbind);
        let causes = base.getattr("LossCause")?;
        Ok(Classes {
            feedback: class("Feedback")?,
            timer: class("Timer")?,
            path_state: class("PathState")?,
            ack: class("Ack")?,
            loss: class("Loss")?,
            loss_gap: causes.getattr("GAP")?.unbind(),
            loss_timeout: causes.getattr("TIMEOUT")?.unbind(),
            layer: class("Layer")?,
            control: class("Control")?,
            reception_state: class("ReceptionState")?,
            gap: class("Gap")?,
            set_rate: class("SetRate")?,
            set_window: class("SetWindow")?,
            set_encoder_rate: class("SetEncoderRate")?,
            set_loss_timeout: class("SetLossTimeout")?,
            set_control: class("SetControl")?,
            stamp_data: class("StampData")?,
            set_header: class("SetHeader")?,
            keep_last: base.getattr("Receiver")?.getattr("fold")?.unbind(),
            set_report: class("SetReport")?,
            send_feedback: class("SendFeedback")?,
            set_layers: class("SetLayers")?,
            join_layers: class("JoinLayers")?,
            set_timer: class("SetTimer")?,
            cancel_timer: class("CancelTimer")?,
            note: class("Note")?,
        })
    }

    fn path<'py>(&self, py: Python<'py>, path: &PathState) -> Made<'py> {
        let PathState { latest_rtt_s, srtt_s, rttvar_s, in_flight_packets, last_sent_sequence, highest_acked_sequence, waiting_bytes } =
            *path;
        let fields = (latest_rtt_s, srtt_s, rttvar_s, in_flight_packets, last_sent_sequence, highest_acked_sequence, waiting_bytes);
        self.path_state.bind(py).call1(fields)
    }

    fn reception<'py>(&self, py: Python<'py>, state: &ReceptionState) -> Made<'py> {
        let fields = (
            state.received_packets,
            state.received_bytes,
            state.lost_packets,
            state.highest_sequence,
            state.last_arrival_s,
            state.sender_rtt_s,
        );
        self.reception_state.bind(py).call1(fields)
    }

    /// header: of the receiver's making, `None` where there is none.
    fn feedback<'py>(&self, py: Python<'py>, feedback: &Feedback, header: Option<Bound<'py, PyAny>>) -> Made<'py> {
        let fields = (
            feedback.reporter,
            feedback.loss_fraction,
            feedback.rtt_s,
            feedback.jitter_s,
            feedback.desired_rate_bps,
            feedback.utilisation,
            feedback.receive_rate_bps,
            feedback.loss_event_rate,
            header,
        );
        self.feedback.bind(py).call1(fields)
    }

    /// header: what the packet's own header says, `None` where it has none.
    fn ack<'py>(&self, py: Python<'py>, ack: &Ack, header: Option<Bound<'py, PyAny>>) -> Made<'py> {
        let path = self.path(py, &ack.path)?;
        let Ack { sequence, rtt_s, newly_acked_packets, one_way_delay_s, ecn, held_s, ends_report, .. } = *ack;
        self.ack.bind(py).call1((sequence, rtt_s, newly_acked_packets, path, one_way_delay_s, header, ecn, held_s, ends_report))
    }

    fn loss<'py>(&self, py: Python<'py>, loss: &Loss) -> Made<'py> {
        let cause = match loss.cause {
            LossCause::Gap => &self.loss_gap,
            LossCause::Timeout => &self.loss_timeout,
        };
        let fields = (loss.first_sequence, loss.last_sequence, loss.lost_packets, cause, self.path(py, &loss.path)?);
        self.loss.bind(py).call1(fields)
    }

    fn timer<'py>(&self, py: Python<'py>, name: &str, path: Option<&PathState>) -> Made<'py> {
        let path = path.map(|path| self.path(py, path)).transpose()?;
        self.timer.bind(py).call1((name, path))
    }

    fn control<'py>(&self, py: Python<'py>, control: &Control) -> Made<'py> {
        let layer = |layer: &Layer| self.layer.bind(py).call1((layer.address, layer.rate_bps));
        let layers = PyTuple::new(py, control.layers.iter().map(layer).collect::<PyResult<Vec<_>>>()?)?;
        self.control.bind(py).call1((control.sender, control.desired_rate_bps, control.utilisation, layers))
    }

    fn gap<'py>(&self, py: Python<'py>, gap: &Gap) -> Made<'py> {
        let reception = self.reception(py, &gap.reception)?;
        self.gap.bind(py).call1((gap.first_lost_sequence, gap.last_lost_sequence, gap.before_s, gap.after_s, reception))
    }
}

/// An event, or a part of one.
type Made<'py> = PyResult<Bound<'py, PyAny>>;

/// One half of an algorithm in Python, with the source of randomness that its handlers are given.
pub(crate) struct PythonHalf {
    object: Py<PyAny>,
    rng: Py<PyAny>,
    classes: &'static Classes,
    interests: Interests,
    /// Where packets have a header of their own: the `own_header.Carried` of it, and what that says.
    header: Option<(Py<PyAny>, OwnHeader)>,
    fold: Fold,
}

/// What a receiver makes of the headers of packets that are not acknowledged one by one.
enum Fold {
    Last,
    /// The one in which these bits are least, as an unsigned number: a field of what goes back.
    Least(Place),
    /// What the algorithm's own `fold` says.
    Own,
}

fn quantity(name: &str) -> PyResult<Quantity> {
    Ok(match name {
        "rtt_us" => Quantity::RttUs,
        "interval_us" => Quantity::IntervalUs,
        "rate_bps" => Quantity::RateBps,
        "window_packets" => Quantity::WindowPackets,
        "sequence" => Quantity::Sequence,
        "sent_ns" => Quantity::SentNs,
        other => return Err(PyTypeError::new_err(format!("a sender knows nothing named {other:?} that it could write into a header"))),
    })
}

/// Whether a receiving half has a `fold` of its own.
fn folds(half: &Bound<'_, PyAny>, classes: &Classes) -> PyResult<bool> {
    let own = half.get_type().getattr_opt("fold")?;
    Ok(own.is_some_and(|own| !own.is(&classes.keep_last)))
}

/// The header that a half was given (`carried` of `base.py`). TypeError: it wants one, and was given none.
fn own_header(half: &Bound<'_, PyAny>) -> PyResult<Option<(Py<PyAny>, OwnHeader)>> {
    let Some(carried) = half.getattr_opt("carried")?.filter(|carried| !carried.is_none()) else {
        let wanted = half.getattr("interests")?.getattr("header")?;
        return if wanted.is_none() {
            Ok(None)
        } else {
            Err(PyTypeError::new_err(format!(
                "packets are to carry the header {}: set Sender.carried to its layout",
                wanted.getattr("type")?
            )))
        };
    };
    let filled: Vec<(String, usize, usize)> = carried.getattr("filled")?.extract()?;
    let fill = |(name, first_bit, bits): (String, usize, usize)| quantity(&name).map(|quantity| (quantity, Place { first_bit, bits }));
    let filled = filled.into_iter().map(fill).collect::<PyResult<_>>()?;
    let (from, to): (usize, usize) = carried.getattr("returned")?.extract()?;
    let header = OwnHeader { bytes: carried.getattr("initial")?.extract()?, filled, returned: from..to };
    Ok(Some((carried.unbind(), header)))
}

impl PythonHalf {
    pub(crate) fn new(py: Python<'_>, object: Py<PyAny>, rng: Py<PyAny>) -> PyResult<PythonHalf> {
        let stated = object.bind(py).getattr("interests")?;
        let detail: String = stated.getattr("acks")?.getattr("value")?.extract()?;
        let acks = match detail.as_str() {
            "none" => AckDetail::None,
            "losses" => AckDetail::Losses,
            "every" => AckDetail::Every,
            other => return Err(PyTypeError::new_err(format!("interests.acks is {other:?}: none, losses or every"))),
        };
        let interests = Interests {
            acks,
            gaps: stated.getattr("gaps")?.extract()?,
            rtcp: stated.getattr("rtcp")?.extract()?,
            loss_distance_packets: stated.getattr("loss_distance_packets")?.extract()?,
            timed_acks: stated.getattr("timed_acks")?.extract()?,
            ecn: stated.getattr("ecn")?.extract()?,
        };
        let header = own_header(object.bind(py))?;
        let classes = CLASSES.get_or_try_init(py, || Classes::import(py))?;
        let least: Option<String> = stated.getattr("least")?.extract()?;
        let fold = match (&header, least) {
            (Some((carried, _)), Some(field)) => {
                let (first_bit, bits): (usize, usize) = carried.bind(py).call_method1("place_returned", (field,))?.extract()?;
                Fold::Least(Place { first_bit, bits })
            }
            (Some(_), None) if folds(object.bind(py), classes)? => Fold::Own,
            _ => Fold::Last,
        };
        Ok(PythonHalf { object, rng, classes, interests, header, fold })
    }

    /// Calls a handler and appends what it answers.
    fn call<'py>(&self, handler: &Bound<'py, PyString>, arguments: impl PyCallArgs<'py>, actions: &mut Actions) -> PyResult<()> {
        let answer = self.object.bind(handler.py()).call_method1(handler, arguments)?;
        for action in answer.try_iter()? {
            actions.push(self.action(&action?)?);
        }
        Ok(())
    }

    fn action(&self, action: &Bound<'_, PyAny>) -> PyResult<Action> {
        if !action.get_type().is(&self.classes.set_header) {
            return action_of(self.classes, action);
        }
        let Some((carried, _)) = &self.header else {
            return Err(PyTypeError::new_err("SetHeader: the flow's packets have no header of their own (Interests.header)"));
        };
        let py = action.py();
        let values = action.getattr(intern!(py, "values"))?;
        let places: Vec<(usize, usize, u64)> = carried.bind(py).call_method1(intern!(py, "places"), (values,))?.extract()?;
        Ok(Action::SetHeader { fields: places.into_iter().map(|(first_bit, bits, value)| (Place { first_bit, bits }, value)).collect() })
    }

    /// What came back of a packet's own header, as an object with its fields' names.
    fn said<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some((carried, _)) = self.header.as_ref().filter(|_| !bytes.is_empty()) else { return Ok(None) };
        carried.bind(py).call_method1(intern!(py, "read"), (PyBytes::new(py, bytes),)).map(Some)
    }
}

fn layers_of(object: &Bound<'_, PyAny>) -> PyResult<Vec<Layer>> {
    let layer = |layer: PyResult<Bound<'_, PyAny>>| {
        let layer = layer?;
        Ok(Layer {
            address: layer.getattr(intern!(layer.py(), "address"))?.extract()?,
            rate_bps: layer.getattr(intern!(layer.py(), "rate_bps"))?.extract()?,
        })
    };
    object.try_iter()?.map(layer).collect()
}

fn note_value(value: &Bound<'_, PyAny>) -> PyResult<NoteValue> {
    if value.is_none() {
        return Ok(NoteValue::None);
    }
    if (value.is_instance_of::<PyBool>() || value.is_instance_of::<PyInt>())
        && let Ok(int) = value.extract()
    {
        return Ok(NoteValue::Int(int));
    }
    if let Ok(float) = value.extract() {
        return Ok(NoteValue::Float(float));
    }
    Ok(NoteValue::Text(value.str()?.to_string()))
}

fn action_of(classes: &Classes, action: &Bound<'_, PyAny>) -> PyResult<Action> {
    macro_rules! field {
        ($name:ident) => {
            action.getattr(intern!(action.py(), stringify!($name)))?
        };
        ($name:ident, value) => {
            field!($name).extract()?
        };
    }
    let class = action.get_type();
    let is = |known: &Py<PyAny>| class.is(known);
    Ok(if is(&classes.set_rate) {
        Action::SetRate { rate_bps: field!(rate_bps, value), burst_packets: field!(burst_packets, value) }
    } else if is(&classes.set_timer) {
        Action::SetTimer { name: field!(name, value), at_s: field!(at_s, value) }
    } else if is(&classes.set_window) {
        Action::SetWindow { window_packets: field!(window_packets, value) }
    } else if is(&classes.set_encoder_rate) {
        Action::SetEncoderRate { rate_bps: field!(rate_bps, value) }
    } else if is(&classes.note) {
        let pair = |pair: PyResult<Bound<'_, PyAny>>| {
            let (name, value): (String, Bound<'_, PyAny>) = pair?.extract()?;
            Ok((name, note_value(&value)?))
        };
        Action::Note { kind: field!(kind, value), values: field!(values).try_iter()?.map(pair).collect::<PyResult<_>>()? }
    } else if is(&classes.set_loss_timeout) {
        Action::SetLossTimeout(LossTimeout {
            timeout_s: field!(timeout_s, value),
            srtt_factor: field!(srtt_factor, value),
            rttvar_factor: field!(rttvar_factor, value),
            granularity_s: field!(granularity_s, value),
            before_sending: field!(before_sending, value),
        })
    } else if is(&classes.set_control) {
        Action::SetControl {
            desired_rate_bps: field!(desired_rate_bps, value),
            utilisation: field!(utilisation, value),
            layers: layers_of(&field!(layers))?,
        }
    } else if is(&classes.set_report) {
        Action::SetReport { desired_rate_bps: field!(desired_rate_bps, value), utilisation: field!(utilisation, value) }
    } else if is(&classes.send_feedback) {
        Action::SendFeedback { loss_event_rate: field!(loss_event_rate, value) }
    } else if is(&classes.stamp_data) {
        Action::StampData { rtt_s: field!(rtt_s, value) }
    } else if is(&classes.cancel_timer) {
        Action::CancelTimer { name: field!(name, value) }
    } else if is(&classes.set_layers) {
        Action::SetLayers { layers: layers_of(&field!(layers))? }
    } else if is(&classes.join_layers) {
        Action::JoinLayers { addresses: field!(addresses, value) }
    } else {
        return Err(PyTypeError::new_err(format!("{} is no action of fairlane.hosts.algorithms.base", class.name()?)));
    })
}

/// Calls a handler of a [`PythonHalf`] with the time, what it is told, and the source of randomness.
macro_rules! tell {
    ($half:expr, $handler:literal, $now:expr, $actions:expr $(, |$py:ident, $classes:ident| $($told:expr),+)?) => {
        Python::attach(|py| {
            $(let ($py, $classes) = (py, $half.classes);)?
            $half.call(intern!(py, $handler), (seconds($now), $($($told,)+)? &$half.rng), $actions)
        })
        .map_err(Fault::from)
    };
}

impl SenderAlgorithm for PythonHalf {
    fn interests(&self) -> Interests {
        self.interests
    }

    fn header(&self) -> Option<OwnHeader> {
        self.header.as_ref().map(|(_, header)| header.clone())
    }

    fn on_start(&mut self, now: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        tell!(self, "on_start", now, actions)
    }

    fn on_feedback(&mut self, now: Nanos, feedback: &Feedback, actions: &mut Actions) -> Result<(), Fault> {
        tell!(self, "on_feedback", now, actions, |py, classes| classes.feedback(py, feedback, self.said(py, feedback.header)?)?)
    }

    fn on_leave(&mut self, now: Nanos, reporter: u32, actions: &mut Actions) -> Result<(), Fault> {
        tell!(self, "on_leave", now, actions, |_py, _classes| reporter)
    }

    fn on_ack(&mut self, now: Nanos, ack: &Ack, actions: &mut Actions) -> Result<(), Fault> {
        tell!(self, "on_ack", now, actions, |py, classes| classes.ack(py, ack, self.said(py, ack.header)?)?)
    }

    fn on_loss(&mut self, now: Nanos, loss: &Loss, actions: &mut Actions) -> Result<(), Fault> {
        tell!(self, "on_loss", now, actions, |py, classes| classes.loss(py, loss)?)
    }

    fn on_timer(&mut self, now: Nanos, name: &str, path: Option<&PathState>, actions: &mut Actions) -> Result<(), Fault> {
        tell!(self, "on_timer", now, actions, |py, classes| classes.timer(py, name, path)?)
    }
}

impl ReceiverAlgorithm for PythonHalf {
    fn interests(&self) -> Interests {
        self.interests
    }

    fn returned(&self) -> Option<Range<usize>> {
        self.header.as_ref().map(|(_, header)| header.returned.clone())
    }

    fn fold(&mut self, kept: &mut Vec<u8>, new: &[u8]) -> Result<(), Fault> {
        if kept.is_empty() || matches!(self.fold, Fold::Last) {
            kept.clear();
            kept.extend_from_slice(new);
        } else if let Fold::Least(place) = self.fold {
            if place.read(new) < place.read(kept) {
                kept.clear();
                kept.extend_from_slice(new);
            }
        } else if let Some((carried, _)) = &self.header {
            *kept = Python::attach(|py| {
                let (old, new) = (self.said(py, kept)?, self.said(py, new)?);
                let folded = self.object.bind(py).call_method1(intern!(py, "fold"), (old, new))?;
                carried.bind(py).call_method1(intern!(py, "write"), (folded,))?.extract::<Vec<u8>>()
            })
            .map_err(Fault::from)?;
        }
        Ok(())
    }

    fn on_start(&mut self, now: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        tell!(self, "on_start", now, actions)
    }

    fn on_control(&mut self, now: Nanos, control: &Control, actions: &mut Actions) -> Result<(), Fault> {
        tell!(self, "on_control", now, actions, |py, classes| classes.control(py, control)?)
    }

    fn on_gap(&mut self, now: Nanos, gap: &Gap, actions: &mut Actions) -> Result<(), Fault> {
        tell!(self, "on_gap", now, actions, |py, classes| classes.gap(py, gap)?)
    }

    fn on_timer(&mut self, now: Nanos, name: &str, reception: &ReceptionState, actions: &mut Actions) -> Result<(), Fault> {
        tell!(self, "on_timer", now, actions, |py, classes| classes.timer(py, name, None)?, classes.reception(py, reception)?)
    }
}
