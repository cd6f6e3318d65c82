//! Records as Python sees them: tuples and dictionaries.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use fairlane_device::{Delays, DropCause};
use fairlane_endpoint::record::FlowLog;
use fairlane_virtual::record::PortSample;
use fairlane_virtual::Nanos;
use pyo3::exceptions::PyIndexError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use pythonize::pythonize;

/// A dictionary. Its keys are strings that Python makes once.
macro_rules! dict {
    ($py:expr, $($key:ident = $value:expr),* $(,)?) => {{
        let dict = PyDict::new($py);
        $(dict.set_item(pyo3::intern!($py, stringify!($key)), $value)?;)*
        dict
    }};
}
pub(crate) use dict;

/// The records of one end of a flow, a sequence of `(time_ns, kind, fields)`. Each is made when it is read: there are many, most of
/// them are read once, and some never.
#[pyclass(frozen, sequence)]
pub(crate) struct Log(pub(crate) FlowLog);

#[pymethods]
impl Log {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Record<'py>> {
        let (time, record) = self.0.get(index).ok_or_else(|| PyIndexError::new_err("the log has no such record"))?;
        let fields = pythonize(py, record)?.downcast_into::<PyDict>()?;
        let name = intern!(py, "kind");
        let kind = fields.as_any().get_item(name)?;
        fields.del_item(name)?;
        Ok((*time, kind, fields))
    }
}

type Record<'py> = (Nanos, Bound<'py, PyAny>, Bound<'py, PyDict>);

/// `"packets":2,"sum_ns":9,"min_ns":4,"max_ns":5,"bins":[[4,1],[5,1]]`: of each bin its begin and its packets.
pub(crate) fn delays(delays: &Delays) -> String {
    let (least, largest) = delays.range();
    let bins: Vec<String> = delays.bins().map(|(begin, count)| format!("[{begin},{count}]")).collect();
    let (packets, sum) = (delays.packets(), delays.sum());
    format!("\"packets\":{packets},\"sum_ns\":{sum},\"min_ns\":{least},\"max_ns\":{largest},\"bins\":[{}]", bins.join(","))
}

/// The names of drop causes, in the order of the columns.
pub(crate) fn drop_causes() -> Vec<&'static str> {
    DropCause::ALL.iter().map(|cause| cause.as_str()).collect()
}

/// `[(switch, port, sums)]`: of the samples from `first` on that are a multiple of `step`, one after the other as native doubles: rx_bytes,
/// tx_bytes, queue_integral_packet_ns, drops by cause.
pub(crate) fn port_sums<'py>(
    py: Python<'py>,
    samples: &[PortSample],
    first: Nanos,
    step: NonZeroU64,
) -> Vec<(usize, u32, Bound<'py, PyBytes>)> {
    let mut found: BTreeMap<(usize, u32), (Option<Nanos>, Vec<u8>)> = BTreeMap::new();
    for PortSample { time, port, switch } in samples.iter().filter(|sample| sample.time >= first && sample.time % step == 0) {
        let (last, sums) = found.entry((*switch, port.port)).or_default();
        // A port is read again where its rate changes, and at marked instants.
        if last.replace(*time) == Some(*time) {
            continue;
        }
        let counts = [port.rx_bytes as f64, port.tx_bytes as f64, port.queue_integral_packet_ns as f64];
        let drops = port.drops.iter().map(|(_, count)| count as f64);
        sums.extend(counts.into_iter().chain(drops).flat_map(f64::to_ne_bytes));
    }
    found.into_iter().map(|((switch, port), (_, sums))| (switch, port, PyBytes::new(py, &sums))).collect()
}
