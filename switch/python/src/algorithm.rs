//! Python algorithms behind the network's traits: `fairlane.hosts.algorithms.base` on one side, `fairlane_endpoint::algorithm` on the other.

use fairlane_endpoint::algorithm::{
    Ack, AckDetail, Action, Actions, Control, Fault, Feedback, Gap, Interests, Layer, Loss, LossCause, LossTimeout, NoteValue, PathState,
    ReceiverAlgorithm, ReceptionState, SenderAlgorithm,
};
use fairlane_endpoint::seconds;
use fairlane_virtual::Nanos;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyTuple};

/// The classes of `fairlane.hosts.algorithms.base` that events are made of.
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
}

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
        })
    }

    fn path<'py>(&self, py: Python<'py>, path: &PathState) -> PyResult<Bound<'py, PyAny>> {
        let PathState { latest_rtt_s, srtt_s, rttvar_s, in_flight_packets, last_sent_sequence, highest_acked_sequence } = *path;
        let fields = (latest_rtt_s, srtt_s, rttvar_s, in_flight_packets, last_sent_sequence, highest_acked_sequence);
        self.path_state.bind(py).call1(fields)
    }

    fn reception<'py>(&self, py: Python<'py>, state: &ReceptionState) -> PyResult<Bound<'py, PyAny>> {
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
}

/// One half of an algorithm in Python, with the source of randomness that its handlers are given.
pub(crate) struct PythonHalf {
    object: Py<PyAny>,
    rng: Py<PyAny>,
    classes: Classes,
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
        let interests = Interests {
            acks,
            gaps: stated.getattr("gaps")?.extract()?,
            rtcp: stated.getattr("rtcp")?.extract()?,
            loss_distance_packets: stated.getattr("loss_distance_packets")?.extract()?,
        };
        Ok(PythonHalf { object, rng, classes: Classes::import(py)?, interests })
    }

    /// Calls a handler with `now_s`, the event, and the source of randomness; appends what it answers.
    fn call<'py, E>(&self, py: Python<'py>, handler: &str, now: Nanos, event: E, actions: &mut Actions) -> PyResult<()>
    where
        E: FnOnce(&Classes) -> PyResult<Vec<Bound<'py, PyAny>>>,
    {
        let mut arguments = vec![PyFloat::new(py, seconds(now)).into_any()];
        arguments.extend(event(&self.classes)?);
        arguments.push(self.rng.bind(py).clone());
        let answer = self.object.bind(py).call_method1(handler, PyTuple::new(py, arguments)?)?;
        for action in answer.try_iter()? {
            actions.push(action_of(&action?)?);
        }
        Ok(())
    }
}

fn layers_of(object: &Bound<'_, PyAny>) -> PyResult<Vec<Layer>> {
    let layer = |layer: PyResult<Bound<'_, PyAny>>| {
        let layer = layer?;
        Ok(Layer { address: layer.getattr("address")?.extract()?, rate_bps: layer.getattr("rate_bps")?.extract()? })
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

fn action_of(action: &Bound<'_, PyAny>) -> PyResult<Action> {
    let field = |name: &str| action.getattr(name);
    let name = action.get_type().name()?.to_string();
    Ok(match name.as_str() {
        "SetRate" => Action::SetRate { rate_bps: field("rate_bps")?.extract()?, burst_packets: field("burst_packets")?.extract()? },
        "SetWindow" => Action::SetWindow { window_packets: field("window_packets")?.extract()? },
        "SetLossTimeout" => Action::SetLossTimeout(LossTimeout {
            timeout_s: field("timeout_s")?.extract()?,
            srtt_factor: field("srtt_factor")?.extract()?,
            rttvar_factor: field("rttvar_factor")?.extract()?,
            granularity_s: field("granularity_s")?.extract()?,
            before_sending: field("before_sending")?.extract()?,
        }),
        "SetControl" => Action::SetControl {
            desired_rate_bps: field("desired_rate_bps")?.extract()?,
            utilisation: field("utilisation")?.extract()?,
            layers: layers_of(&field("layers")?)?,
        },
        "StampData" => Action::StampData { rtt_s: field("rtt_s")?.extract()? },
        "SetReport" => {
            Action::SetReport { desired_rate_bps: field("desired_rate_bps")?.extract()?, utilisation: field("utilisation")?.extract()? }
        }
        "SendFeedback" => Action::SendFeedback { loss_event_rate: field("loss_event_rate")?.extract()? },
        "SetLayers" => Action::SetLayers { layers: layers_of(&field("layers")?)? },
        "JoinLayers" => Action::JoinLayers { addresses: field("addresses")?.extract()? },
        "SetTimer" => Action::SetTimer { name: field("name")?.extract()?, at_s: field("at_s")?.extract()? },
        "CancelTimer" => Action::CancelTimer { name: field("name")?.extract()? },
        "Note" => {
            let values = field("values")?;
            let pair = |pair: PyResult<Bound<'_, PyAny>>| {
                let (name, value): (String, Bound<'_, PyAny>) = pair?.extract()?;
                Ok((name, note_value(&value)?))
            };
            Action::Note { kind: field("kind")?.extract()?, values: values.try_iter()?.map(pair).collect::<PyResult<_>>()? }
        }
        _ => return Err(PyTypeError::new_err(format!("{name} is no action of fairlane.hosts.algorithms.base"))),
    })
}

impl SenderAlgorithm for PythonHalf {
    fn interests(&self) -> Interests {
        self.interests
    }

    fn on_start(&mut self, now: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        Python::attach(|py| self.call(py, "on_start", now, |_| Ok(vec![]), actions)).map_err(Fault::from)
    }

    fn on_feedback(&mut self, now: Nanos, feedback: &Feedback, actions: &mut Actions) -> Result<(), Fault> {
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
        let called =
            Python::attach(|py| self.call(py, "on_feedback", now, |classes| Ok(vec![classes.feedback.bind(py).call1(fields)?]), actions));
        called.map_err(Fault::from)
    }

    fn on_leave(&mut self, now: Nanos, reporter: u32, actions: &mut Actions) -> Result<(), Fault> {
        let called = Python::attach(|py| self.call(py, "on_leave", now, |_| Ok(vec![reporter.into_pyobject(py)?.into_any()]), actions));
        called.map_err(Fault::from)
    }

    fn on_ack(&mut self, now: Nanos, ack: &Ack, actions: &mut Actions) -> Result<(), Fault> {
        let called = Python::attach(|py| {
            let event = |classes: &Classes| {
                let path = classes.path(py, &ack.path)?;
                Ok(vec![classes.ack.bind(py).call1((ack.sequence, ack.rtt_s, ack.newly_acked_packets, path))?])
            };
            self.call(py, "on_ack", now, event, actions)
        });
        called.map_err(Fault::from)
    }

    fn on_loss(&mut self, now: Nanos, loss: &Loss, actions: &mut Actions) -> Result<(), Fault> {
        let called = Python::attach(|py| {
            let event = |classes: &Classes| {
                let cause = match loss.cause {
                    LossCause::Gap => &classes.loss_gap,
                    LossCause::Timeout => &classes.loss_timeout,
                };
                let path = classes.path(py, &loss.path)?;
                let fields = (loss.first_sequence, loss.last_sequence, loss.lost_packets, cause.bind(py), path);
                Ok(vec![classes.loss.bind(py).call1(fields)?])
            };
            self.call(py, "on_loss", now, event, actions)
        });
        called.map_err(Fault::from)
    }

    fn on_timer(&mut self, now: Nanos, name: &str, path: Option<&PathState>, actions: &mut Actions) -> Result<(), Fault> {
        let called = Python::attach(|py| {
            let event = |classes: &Classes| {
                let path = path.map(|path| classes.path(py, path)).transpose()?;
                Ok(vec![classes.timer.bind(py).call1((name, path))?])
            };
            self.call(py, "on_timer", now, event, actions)
        });
        called.map_err(Fault::from)
    }
}

impl ReceiverAlgorithm for PythonHalf {
    fn interests(&self) -> Interests {
        self.interests
    }

    fn on_start(&mut self, now: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        Python::attach(|py| self.call(py, "on_start", now, |_| Ok(vec![]), actions)).map_err(Fault::from)
    }

    fn on_control(&mut self, now: Nanos, control: &Control, actions: &mut Actions) -> Result<(), Fault> {
        let called = Python::attach(|py| {
            let event = |classes: &Classes| {
                let layer = |layer: &Layer| classes.layer.bind(py).call1((layer.address, layer.rate_bps));
                let layers = PyTuple::new(py, control.layers.iter().map(layer).collect::<PyResult<Vec<_>>>()?)?;
                let fields = (control.sender, control.desired_rate_bps, control.utilisation, layers);
                Ok(vec![classes.control.bind(py).call1(fields)?])
            };
            self.call(py, "on_control", now, event, actions)
        });
        called.map_err(Fault::from)
    }

    fn on_gap(&mut self, now: Nanos, gap: &Gap, actions: &mut Actions) -> Result<(), Fault> {
        let called = Python::attach(|py| {
            let event = |classes: &Classes| {
                let reception = classes.reception(py, &gap.reception)?;
                let fields = (gap.first_lost_sequence, gap.last_lost_sequence, gap.before_s, gap.after_s, reception);
                Ok(vec![classes.gap.bind(py).call1(fields)?])
            };
            self.call(py, "on_gap", now, event, actions)
        });
        called.map_err(Fault::from)
    }

    fn on_timer(&mut self, now: Nanos, name: &str, reception: &ReceptionState, actions: &mut Actions) -> Result<(), Fault> {
        let called = Python::attach(|py| {
            let event = |classes: &Classes| Ok(vec![classes.timer.bind(py).call1((name, py.None()))?, classes.reception(py, reception)?]);
            self.call(py, "on_timer", now, event, actions)
        });
        called.map_err(Fault::from)
    }
}
