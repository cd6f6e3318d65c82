//! A control plane in Python.

use fairlane_endpoint::algorithm::Fault;
use fairlane_p4rt::proto::p4::v1::p4_data::Data;
use fairlane_p4rt::proto::p4::v1::stream_message_response::Update;
use fairlane_p4rt::proto::p4::v1::{DigestList, StreamMessageResponse};
use fairlane_virtual::{Answer, ControlAction, ControlPlane, Nanos, Request};
use prost::Message;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyList, PyTuple};

/// A Python object with `on_start(now_ns)`, `on_timer(now_ns, id)`, `on_stream(now_ns, switch, message)` and
/// `on_answer(now_ns, switch, token, code, text, responses)`; if it has `on_digest(now_ns, switch, digest_id, list_id, rows)`, that gets
/// digests of structs: a row has the members of one as numbers. Each returns a sequence of `("timer", at_ns, id)` and
/// `("set_pipeline" | "write" | "read" | "stream", switch, token, message)`; messages are serialised P4Runtime.
pub(crate) struct PythonControl {
    object: Py<PyAny>,
    takes_digests: bool,
}

impl PythonControl {
    pub(crate) fn new(py: Python<'_>, object: Py<PyAny>) -> PyResult<Self> {
        let takes_digests = object.bind(py).hasattr("on_digest")?;
        Ok(PythonControl { object, takes_digests })
    }

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
    // Extracting a `Vec<u8>` would ask Python for each byte of a program of 100 kB.
    let message = || Ok::<_, PyErr>(action.get_item(3)?.downcast::<PyBytes>()?.as_bytes().to_vec());
    let request = match kind.as_str() {
        "set_pipeline" => Request::SetPipeline(message()?),
        "write" => Request::Write(message()?),
        "read" => Request::Read(message()?),
        "stream" => Request::Stream(message()?),
        _ => return Err(PyTypeError::new_err(format!("{kind:?} is no action: timer, set_pipeline, write, read or stream"))),
    };
    Ok(ControlAction::Call { switch: action.get_item(1)?.extract()?, token: action.get_item(2)?.extract()?, request })
}

/// The members of each digest as numbers; `None` if a digest is not a struct of bit strings.
fn rows<'py>(py: Python<'py>, digests: &DigestList) -> PyResult<Option<Bound<'py, PyList>>> {
    let rows = PyList::empty(py);
    for digest in &digests.data {
        let Some(Data::Struct(row)) = &digest.data else { return Ok(None) };
        let mut numbers = Vec::with_capacity(row.members.len());
        for member in &row.members {
            let Some(Data::Bitstring(bytes)) = &member.data else { return Ok(None) };
            numbers.push(number(py, bytes)?);
        }
        rows.append(PyTuple::new(py, numbers)?)?;
    }
    Ok(Some(rows))
}

/// An unsigned number of any width, most significant byte first.
fn number<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    if bytes.len() > size_of::<u64>() {
        return py.get_type::<PyInt>().call_method1("from_bytes", (PyBytes::new(py, bytes), "big"));
    }
    let value = bytes.iter().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
    Ok(value.into_pyobject(py)?.into_any())
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

    fn on_stream(
        &mut self,
        now: Nanos,
        switch: usize,
        message: &StreamMessageResponse,
        actions: &mut Vec<ControlAction>,
    ) -> Result<(), Fault> {
        let called = Python::attach(|py| {
            if let (true, Some(Update::Digest(digests))) = (self.takes_digests, &message.update) {
                if let Some(rows) = rows(py, digests)? {
                    return self.call(py, "on_digest", (now, switch, digests.digest_id, digests.list_id, rows).into_pyobject(py)?, actions);
                }
            }
            let bytes = PyBytes::new(py, &message.encode_to_vec());
            self.call(py, "on_stream", (now, switch, bytes).into_pyobject(py)?, actions)
        });
        called.map_err(Fault::from)
    }
}
