//! MPEG-4 video: a group of pictures repeated, each frame's size from the TES model of its type.

use fairlane_units::rounded;

use crate::error::positive;
use crate::tes::{normal_quantile, Tes, TesParameters};
use crate::{Emission, Nanos, ParameterError, Stream};
use serde::Deserialize;

/// The default parameters, with their origin: `data/mpeg4.toml`.
const DEFAULT: &str = include_str!("../data/mpeg4.toml");

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// Intra: coded alone.
    I,
    /// Predicted from the I or P frame before it.
    P,
    /// Interpolated between its neighbours.
    B,
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    pub at: Nanos,
    pub bytes: u32,
    pub kind: FrameKind,
}

/// The model of one frame type: a lognormal size, correlated by TES.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrameModel {
    pub mean_bytes: f64,
    /// Standard deviation over mean.
    pub coefficient_of_variation: f64,
    pub tes: TesParameters,
}

/// What an MPEG-4 source needs to know; see `data/mpeg4.toml` for the form.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mpeg4Parameters {
    /// Where the numbers come from.
    pub origin: String,
    pub frames_per_second: f64,
    /// Letters I, P and B in order of transmission.
    pub group_of_pictures: String,
    pub min_frame_bytes: u32,
    pub max_frame_bytes: u32,
    pub i: FrameModel,
    pub p: FrameModel,
    pub b: FrameModel,
}

impl Mpeg4Parameters {
    /// Reads parameters; `file` names the text in errors.
    ///
    /// # Errors
    /// Text that is no TOML, a key that is missing or unknown, a value that cannot be.
    pub fn parse(file: &str, text: &str) -> Result<Self, ParameterError> {
        let parameters: Mpeg4Parameters = toml::from_str(text)
            .map_err(|e| ParameterError::Text { file: file.to_string(), message: e.to_string().trim_end().to_string() })?;
        parameters.validate().map_err(|e| ParameterError::Text { file: file.to_string(), message: e.to_string() })?;
        Ok(parameters)
    }

    /// The parameters that come with this crate.
    ///
    /// # Errors
    /// None, unless `data/mpeg4.toml` was changed for the worse; a test parses it.
    pub fn standard() -> Result<Self, ParameterError> {
        Mpeg4Parameters::parse("data/mpeg4.toml", DEFAULT)
    }

    fn validate(&self) -> Result<(), ParameterError> {
        positive("frames_per_second", self.frames_per_second)?;
        kinds(&self.group_of_pictures)?;
        if self.min_frame_bytes == 0 || self.min_frame_bytes > self.max_frame_bytes {
            return Err(ParameterError::value("min_frame_bytes", self.min_frame_bytes, "give at least 1 and at most max_frame_bytes"));
        }
        for (name, model) in [("i", &self.i), ("p", &self.p), ("b", &self.b)] {
            positive(&format!("{name}.mean_bytes"), model.mean_bytes)?;
            let cov = model.coefficient_of_variation;
            if !(cov.is_finite() && cov >= 0.0) {
                return Err(ParameterError::value(format!("{name}.coefficient_of_variation"), cov, "give 0 or more"));
            }
            let tes = model.tes;
            if !(tes.innovation_left >= -0.5 && tes.innovation_right <= 0.5 && tes.innovation_left < tes.innovation_right) {
                return Err(ParameterError::value(
                    format!("{name}.tes.innovation_left"),
                    tes.innovation_left,
                    "give -0.5 <= innovation_left < innovation_right <= 0.5",
                ));
            }
            if !(0.0..=1.0).contains(&tes.stitching) {
                return Err(ParameterError::value(format!("{name}.tes.stitching"), tes.stitching, "give 0 to 1"));
            }
        }
        Ok(())
    }
}

fn kinds(group: &str) -> Result<Vec<FrameKind>, ParameterError> {
    let kind = |letter| match letter {
        'I' => Some(FrameKind::I),
        'P' => Some(FrameKind::P),
        'B' => Some(FrameKind::B),
        _ => None,
    };
    let kinds: Option<Vec<_>> = group.chars().map(kind).collect();
    kinds
        .filter(|k| k.first() == Some(&FrameKind::I))
        .ok_or_else(|| ParameterError::value("group_of_pictures", format!("{group:?}"), "start with I and use the letters I, P and B"))
}

#[derive(Debug)]
struct Model {
    tes: Tes,
    /// Mean and standard deviation of the size's logarithm.
    mu: f64,
    sigma: f64,
}

impl Model {
    fn new(model: FrameModel) -> Self {
        let variance = libm::log1p(model.coefficient_of_variation * model.coefficient_of_variation);
        Model { tes: Tes::new(model.tes), mu: libm::log(model.mean_bytes) - variance / 2.0, sigma: libm::sqrt(variance) }
    }
}

/// An MPEG-4 source: an endless iterator of frames, one per frame interval from `start` on.
#[derive(Debug)]
pub struct Mpeg4 {
    group: Vec<FrameKind>,
    models: [Model; 3],
    frame_interval_s: f64,
    min: f64,
    max: f64,
    scale: f64,
    start: Nanos,
    number: u64,
    stream: Stream,
}

impl Mpeg4 {
    /// `rate_scale` multiplies each frame's size after the bounds: 1.0 for the parameters as they are.
    ///
    /// # Errors
    /// A parameter that cannot be.
    pub fn new(parameters: &Mpeg4Parameters, rate_scale: f64, start: Nanos, stream: Stream) -> Result<Self, ParameterError> {
        parameters.validate()?;
        positive("rate_scale", rate_scale)?;
        Ok(Mpeg4 {
            group: kinds(&parameters.group_of_pictures)?,
            models: [Model::new(parameters.i), Model::new(parameters.p), Model::new(parameters.b)],
            frame_interval_s: 1.0 / parameters.frames_per_second,
            min: parameters.min_frame_bytes.into(),
            max: parameters.max_frame_bytes.into(),
            scale: rate_scale,
            start,
            number: 0,
            stream,
        })
    }

    /// The frames as emissions.
    pub fn emissions(self) -> impl Iterator<Item = Emission> {
        self.map(|f| Emission { at: f.at, bytes: f.bytes.into() })
    }
}

impl Iterator for Mpeg4 {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        let kind = self.group[(self.number % self.group.len() as u64) as usize];
        let at = self.start.checked_add(rounded(self.number as f64 * self.frame_interval_s))?;
        self.number += 1;
        let model = &mut self.models[kind as usize];
        let u = model.tes.next(&mut self.stream);
        let size = libm::exp(model.mu + model.sigma * normal_quantile(u)).clamp(self.min, self.max) * self.scale;
        // `as` saturates
        Some(Frame { at, bytes: ((size + 0.5) as u32).max(1), kind })
    }
}
