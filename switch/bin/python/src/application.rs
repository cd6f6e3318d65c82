//! What produces the data of a flow.

use fairlane_endpoint::sources::{Gaps, Mpeg4Parameters, Period};
use fairlane_endpoint::{Film, RawTraffic};
use pyo3::prelude::*;

use crate::refused;

/// What stands above a rate-adaptive flow and limits it; made by one of the static methods.
#[pyclass(frozen)]
#[derive(Clone)]
pub(crate) struct Application(Produces);

#[derive(Clone)]
enum Produces {
    ConstantBitRate(u64),
    OnOff(u64, Period, Period),
    Renewal(u64, Gaps, Option<f64>),
    Mpeg4(Box<Mpeg4Parameters>, f64),
    ModelledFilm(Film),
    Film(Film),
}

#[pymethods]
impl Application {
    /// Datagrams of the flow's size at a constant bit rate, headers counted.
    #[staticmethod]
    fn cbr(rate_bps: u64) -> Application {
        Application(Produces::ConstantBitRate(rate_bps))
    }

    /// Datagrams of the flow's size at a constant rate while on. on, off: a mean in seconds for exponential periods, or (mean, shape) for
    /// Pareto's.
    #[staticmethod]
    fn on_off(rate_bps: u64, on: Bound<'_, PyAny>, off: Bound<'_, PyAny>) -> PyResult<Application> {
        Ok(Application(Produces::OnOff(rate_bps, period(&on)?, period(&off)?)))
    }

    /// Single datagrams after independent gaps, at a mean rate with headers. gaps: "exponential" (Poisson arrivals), "constant", or the shape of
    /// Pareto's distribution. mean_bytes: of exponential sizes, each kept between the least that a packet needs and the flow's; None: all have the flow's. Raises
    /// ValueError.
    #[staticmethod]
    #[pyo3(signature = (rate_bps, gaps, mean_bytes=None))]
    fn renewal(rate_bps: u64, gaps: Bound<'_, PyAny>, mean_bytes: Option<f64>) -> PyResult<Application> {
        Ok(Application(Produces::Renewal(rate_bps, gaps_of(&gaps)?, mean_bytes)))
    }

    /// MPEG-4 video frames (`switch/net/sources/data/mpeg4.toml`, or `parameters` of that form). Raises ValueError.
    #[staticmethod]
    #[pyo3(signature = (rate_scale=1.0, parameters=None))]
    fn mpeg4(rate_scale: f64, parameters: Option<&str>) -> PyResult<Application> {
        Ok(Application(Produces::Mpeg4(Box::new(mpeg4_parameters(parameters)?), rate_scale)))
    }

    /// A film that is encoded at the rate that the flow has: by the model of [RFC 8593 sec 5], or with `outside` by the program at the other end
    /// of Place's film_fd. key_interval_frames: None, no key frames but the model's bursts. most_waiting_ns: a picture is left out while more waits in the sender than its rate carries in so long. Raises ValueError.
    #[staticmethod]
    #[pyo3(signature = (frames_per_second, key_interval_frames, min_rate_bps, max_rate_bps, most_waiting_ns, *, outside=false))]
    fn film(
        frames_per_second: f64,
        key_interval_frames: Option<u64>,
        min_rate_bps: f64,
        max_rate_bps: f64,
        most_waiting_ns: u64,
        outside: bool,
    ) -> PyResult<Application> {
        let film = Film { frames_per_second, key_interval_frames, min_rate_bps, max_rate_bps, most_waiting: most_waiting_ns };
        film.check().map_err(refused)?;
        Ok(Application(if outside { Produces::Film(film) } else { Produces::ModelledFilm(film) }))
    }
}

impl Application {
    /// What it produces by itself, whatever rate a flow has. Raises ValueError for a film.
    pub(crate) fn traffic(&self) -> PyResult<RawTraffic> {
        match self.produces() {
            fairlane_endpoint::Produces::Traffic(traffic) => Ok(traffic),
            _ => Err(refused("a film follows the rate of an algorithm, and this flow has none")),
        }
    }

    pub(crate) fn produces(&self) -> fairlane_endpoint::Produces {
        use fairlane_endpoint::Produces as Of;
        Of::Traffic(match &self.0 {
            Produces::ConstantBitRate(rate_bps) => RawTraffic::ConstantBitRate { rate_bps: *rate_bps },
            Produces::OnOff(rate_bps, on, off) => RawTraffic::OnOff { rate_bps: *rate_bps, on: *on, off: *off },
            Produces::Renewal(rate_bps, gaps, mean_bytes) => {
                RawTraffic::Renewal { rate_bps: *rate_bps, gaps: *gaps, mean_bytes: *mean_bytes }
            }
            Produces::Mpeg4(parameters, rate_scale) => RawTraffic::Mpeg4 { parameters: parameters.clone(), rate_scale: *rate_scale },
            Produces::ModelledFilm(film) => return Of::ModelledFilm(*film),
            Produces::Film(film) => return Of::Film(*film),
        })
    }
}

/// The parameters that come with the sources, or a text of their form.
fn mpeg4_parameters(text: Option<&str>) -> PyResult<Mpeg4Parameters> {
    text.map_or_else(Mpeg4Parameters::standard, |text| Mpeg4Parameters::parse("parameters", text)).map_err(refused)
}

fn gaps_of(given: &Bound<'_, PyAny>) -> PyResult<Gaps> {
    if let Ok(shape) = given.extract() {
        return Ok(Gaps::Pareto { shape });
    }
    match given.extract()? {
        "exponential" => Ok(Gaps::Exponential),
        "constant" => Ok(Gaps::Constant),
        other => Err(refused(format!("gaps: {other:?} is neither \"exponential\" nor \"constant\" nor a shape of Pareto's distribution"))),
    }
}

/// Seconds of a mean, or (mean, shape) of Pareto's distribution.
fn period(given: &Bound<'_, PyAny>) -> PyResult<Period> {
    if let Ok(mean_s) = given.extract() {
        return Ok(Period::Exponential { mean_s });
    }
    let (mean_s, shape) = given.extract()?;
    Ok(Period::Pareto { mean_s, shape })
}
