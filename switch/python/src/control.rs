//! A control plane in Python.

use fairlane_endpoint::algorithm::Fault;
use fairlane_virtual::{Answer, ControlAction, ControlPlane, Nanos, Request};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

/// A Python object with `on_start(now_ns)`, `on_timer(now_ns, id)`, `on_stream(now_ns, switch, message)` and
/// `on_answer(now_ns, switch, token, code, text, responses)`. Each returns a sequence of `("timer", at_ns, id)` and
/// `("set_pipeline" | "write" | "read" | "stream", switch, token, message)`; messages are serialised P4Runtime.
pub(crate) struct PythonControl {
    pub(crate) object: Py<PyAny>,
}

impl PythonControl {
    fn call<'py>(&self, py: Python<'py>, handler: &str, arguments: Bound<'py, PyTuple>, actions: &mut Vec<ControlAction>) -> PyResult<()> {
        for action in self.object.bind(py).call_method1(handler, arguments)?.try_iter()? {
            actions.push(action_of(&action?)?);
        }
        Ok(())
    }
}

fn action_of(action: &Bound<'_, PyAny>) -> PyResult<ControlAction> {
    let kind: String = action.get_item(0)?.extract()?;
    if kind == "timer" {
        return Ok(ControlAction::Timer { at: action.get_item(1)?.extract()?, id: action.get_item(2)?.extract()? });
    }
    let message = || action.get_item(3)?.extract::<Vec<u8>>();
    let request = match kind.as_str() {
        "set_pipeline" => Request::SetPipeline(message()?),
        "write" => Request::Write(message()?),
        "read" => Request::Read(message()?),
        "stream" => Request::Stream(message()?),
        _ => return Err(PyTypeError::new_err(format!("{kind:?} is no action: timer, set_pipeline, write, read or stream"))),
    };
    Ok(ControlAction::Call { switch: action.get_item(1)?.extract()?, token: action.get_item(2)?.extract()?, request })
}

impl ControlPlane for PythonControl {
    fn on_start(&mut self, now: Nanos, actions: &mut Vec<ControlAction>) -> Result<(), Fault> {
        Python::attach(|py| self.call(py, "on_start", (now,).into_pyobject(py)?, actions)).map_err(Fault::from)
    }

    fn on_timer(&mut self, now: Nanos, id: u64, actions: &mut Vec<ControlAction>) -> Result<(), Fault> {
        Python::attach(|py| self.call(py, "on_timer", (now, id).into_pyobject(py)?, actions)).map_err(Fault::from)
    }

    fn on_answer(&mut self, now: Nanos, switch: usize, token: u64, answer: Answer, actions: &mut Vec<ControlAction>) -> Result<(), Fault> {
        let called = Python::attach(|py| {
            let (code, text, responses) = match answer {
                Ok(responses) => ("OK", String::new(), responses),
                Err(status) => (status.code.name(), status.to_string(), Vec::new()),
            };
            let responses = PyList::new(py, responses.iter().map(|bytes| PyBytes::new(py, bytes)))?;
            self.call(py, "on_answer", (now, switch, token, code, text, responses).into_pyobject(py)?, actions)
        });
        called.map_err(Fault::from)
    }

    fn on_stream(&mut self, now: Nanos, switch: usize, message: &[u8], actions: &mut Vec<ControlAction>) -> Result<(), Fault> {
        let called = Python::attach(|py| self.call(py, "on_stream", (now, switch, PyBytes::new(py, message)).into_pyobject(py)?, actions));
        called.map_err(Fault::from)
    }
}
