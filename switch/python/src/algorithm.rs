//! Python algorithms behind the network's traits: `fairlane.hosts.algorithms.base` on one side, `fairlane_endpoint::algorithm` on the other.

use fairlane_endpoint::algorithm::{
    Ack, AckDetail, Action, Actions, Control, Explicit, Fault, Feedback, Gap, Interests, Layer, Loss, LossCause, LossTimeout, NoteValue,
    PathState, ReceiverAlgorithm, ReceptionState, SenderAlgorithm,
};
use fairlane_endpoint::circuit_breaker::CircuitBreaker;
use fairlane_endpoint::seconds;
use fairlane_virtual::Nanos;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyInt, PyString, PyTuple};

/// A flow's circuit breakers as Python has them: reduces, usable_loss, usable_rtt_s, unusable_s.
pub(crate) type Breaker = (bool, Option<f64>, Option<f64>, f64);

pub(crate) fn breaker((reduces, usable_loss, usable_rtt_s, unusable_s): Breaker) -> CircuitBreaker {
    CircuitBreaker { reduces, usable_loss, usable_rtt_s, unusable_s }
}

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

    fn feedback<'py>(&self, py: Python<'py>, feedback: &Feedback) -> Made<'py> {
        let fields = (
            feedback.reporter,
            feedback.loss_fraction,
            feedback.rtt_s,
            feedback.jitter_s,
            feedback.desired_rate_bps,
            feedback.utilisation,
            feedback.receive_rate_bps,
            feedback.loss_event_rate,
        );
        self.feedback.bind(py).call1(fields)
    }

    fn ack<'py>(&self, py: Python<'py>, ack: &Ack) -> Made<'py> {
        let path = self.path(py, &ack.path)?;
        let Ack {
            sequence, rtt_s, newly_acked_packets, one_way_delay_s, router_rate_bps, router_change_bps, ecn, held_s, ends_report, ..
        } = *ack;
        self.ack.bind(py).call1((
            sequence,
            rtt_s,
            newly_acked_packets,
            path,
            one_way_delay_s,
            router_rate_bps,
            router_change_bps,
            ecn,
            held_s,
            ends_report,
        ))
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
        let asked: String = stated.getattr("explicit")?.getattr("value")?.extract()?;
        let explicit = match asked.as_str() {
            "none" => Explicit::None,
            "rate" => Explicit::Rate,
            "feedback" => Explicit::Feedback,
            "mark" => Explicit::Mark,
            other => return Err(PyTypeError::new_err(format!("interests.explicit is {other:?}: none, rate, feedback or mark"))),
        };
        let interests = Interests {
            acks,
            gaps: stated.getattr("gaps")?.extract()?,
            rtcp: stated.getattr("rtcp")?.extract()?,
            loss_distance_packets: stated.getattr("loss_distance_packets")?.extract()?,
            timed_acks: stated.getattr("timed_acks")?.extract()?,
            explicit,
            ecn: stated.getattr("ecn")?.extract()?,
        };
        Ok(PythonHalf { object, rng, classes: CLASSES.get_or_try_init(py, || Classes::import(py))?, interests })
    }

    /// Calls a handler and appends what it answers.
    fn call<'py>(&self, handler: &Bound<'py, PyString>, arguments: impl PyCallArgs<'py>, actions: &mut Actions) -> PyResult<()> {
        let answer = self.object.bind(handler.py()).call_method1(handler, arguments)?;
        for action in answer.try_iter()? {
            actions.push(action_of(self.classes, &action?)?);
        }
        Ok(())
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
    if value.is_instance_of::<PyBool>() || value.is_instance_of::<PyInt>() {
        if let Ok(int) = value.extract() {
            return Ok(NoteValue::Int(int));
        }
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

    fn on_start(&mut self, now: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        tell!(self, "on_start", now, actions)
    }

    fn on_feedback(&mut self, now: Nanos, feedback: &Feedback, actions: &mut Actions) -> Result<(), Fault> {
        tell!(self, "on_feedback", now, actions, |py, classes| classes.feedback(py, feedback)?)
    }

    fn on_leave(&mut self, now: Nanos, reporter: u32, actions: &mut Actions) -> Result<(), Fault> {
        tell!(self, "on_leave", now, actions, |_py, _classes| reporter)
    }

    fn on_ack(&mut self, now: Nanos, ack: &Ack, actions: &mut Actions) -> Result<(), Fault> {
        tell!(self, "on_ack", now, actions, |py, classes| classes.ack(py, ack)?)
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
