//! A control plane in Python.

use fairlane_endpoint::algorithm::Fault;
use fairlane_p4rt::proto::p4::v1::p4_data::Data;
use fairlane_p4rt::proto::p4::v1::stream_message_response::Update;
use fairlane_p4rt::proto::p4::v1::{
    entity, table_action, Action, DigestList, ReadResponse, StreamMessageResponse, Update as Written, WriteRequest,
};
use fairlane_virtual::{Answer, ControlAction, ControlPlane, Nanos, Request};
use prost::Message;
use pyo3::exceptions::{PyTypeError, PyValueError};
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
            if let (true, Some(Update::Digest(digests))) = (self.takes_digests, &message.update)
                && let Some(rows) = rows(py, digests)?
            {
                return self.call(py, "on_digest", (now, switch, digests.digest_id, digests.list_id, rows).into_pyobject(py)?, actions);
            }
            let bytes = PyBytes::new(py, &message.encode_to_vec());
            self.call(py, "on_stream", (now, switch, bytes).into_pyobject(py)?, actions)
        });
        called.map_err(Fault::from)
    }
}

/// Counter's id, index, packets and bytes of each counter's cell in serialised `ReadResponse`s: `controller.core.counter_rows`, without
/// Python's messages, which in a page are written in Python.
#[pyfunction]
fn counter_rows(responses: Vec<Bound<'_, PyBytes>>) -> PyResult<Vec<(u32, i64, i64, i64)>> {
    let mut rows = Vec::new();
    for response in responses {
        for entity in ReadResponse::decode(response.as_bytes()).map_err(undecodable)?.entities {
            if let Some(entity::Entity::CounterEntry(cell)) = entity.entity {
                let data = cell.data.unwrap_or_default();
                rows.push((cell.counter_id, cell.index.unwrap_or_default().index, data.packet_count, data.byte_count));
            }
        }
    }
    Ok(rows)
}

/// A serialised `WriteRequest` of table entries whose actions' parameters change: `controller.core.Rewrites`.
#[pyclass]
pub(crate) struct Rewriter {
    request: WriteRequest,
}

#[pymethods]
impl Rewriter {
    #[new]
    fn new(request: &Bound<'_, PyBytes>) -> PyResult<Self> {
        Ok(Rewriter { request: WriteRequest::decode(request.as_bytes()).map_err(undecodable)? })
    }

    /// The request with these values, of each update's parameters in their order; ValueError where it has not as many.
    fn encoded<'py>(&mut self, py: Python<'py>, values: Vec<Vec<Bound<'py, PyBytes>>>) -> PyResult<Bound<'py, PyBytes>> {
        if values.len() != self.request.updates.len() {
            return Err(PyValueError::new_err(format!("{} updates, values of {}", self.request.updates.len(), values.len())));
        }
        for (update, values) in self.request.updates.iter_mut().zip(values) {
            let parameters = action_of_entry(update).map_or(&mut [][..], |action| &mut action.params);
            if values.len() != parameters.len() {
                return Err(PyValueError::new_err(format!("{} parameters, {} values", parameters.len(), values.len())));
            }
            for (parameter, value) in parameters.iter_mut().zip(values) {
                parameter.value.clear();
                parameter.value.extend_from_slice(value.as_bytes());
            }
        }
        Ok(PyBytes::new(py, &self.request.encode_to_vec()))
    }
}

fn action_of_entry(update: &mut Written) -> Option<&mut Action> {
    let Some(entity::Entity::TableEntry(entry)) = update.entity.as_mut()?.entity.as_mut() else { return None };
    let Some(table_action::Type::Action(action)) = entry.action.as_mut()?.r#type.as_mut() else { return None };
    Some(action)
}

fn undecodable(error: prost::DecodeError) -> PyErr {
    PyValueError::new_err(format!("no P4Runtime message: {error}"))
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Rewriter>()?;
    module.add_function(wrap_pyfunction!(counter_rows, module)?)
}
