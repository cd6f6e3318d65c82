//! A loaded program, and its machine code.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::definition::Definition;
use crate::error::LoadError;
use crate::exec::native::Native;
use crate::observe::{Observing, PacketEvent};
use crate::wording::Level;

/// A checked program, ready to be run by any number of [`crate::Switch`]es.
#[derive(Debug, Default)]
pub struct Program {
    definition: Definition,
    source: String,
    /// Which load it comes of; a switch may run a variant of it.
    origin: Origin,
    pub(crate) native: OnceLock<Result<Native, String>>,
}

/// Tells loads apart: two are the same if they share the allocation.
#[derive(Debug, Default, Clone)]
struct Origin(Arc<()>);

impl Deref for Program {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        &self.definition
    }
}

impl Program {
    /// Loads and checks BMv2 JSON (format 2.x), from p4c or from our compiler.
    pub fn from_json(text: &str) -> Result<Program, LoadError> {
        Ok(Program {
            definition: crate::load::load(text, Observing::Nothing)?,
            source: text.to_string(),
            origin: Origin::default(),
            native: OnceLock::new(),
        })
    }

    /// The same program with instructions that note its conditions and actions, and its primitives where everything is asked for.
    pub fn observed(&self, observing: Observing) -> Option<Program> {
        let definition = crate::load::load(&self.source, observing).ok()?;
        Some(Program { definition, source: self.source.clone(), origin: self.origin.clone(), native: OnceLock::new() })
    }

    /// What BMv2's packet log says of a step in this program, which notes everything ([`Program::observed`]), and how urgently; nothing of
    /// a step that only the event log has. An entry of a table is several lines.
    pub fn worded(&self, event: &PacketEvent) -> Option<(Level, String)> {
        crate::wording::worded(self, event)
    }

    /// Packets' steps in this program, which notes values ([`Program::observed`]), as data: an object for each (docs/why.md).
    pub fn explained(&self, events: &[PacketEvent]) -> Vec<serde_json::Value> {
        crate::explain::explained(self, events)
    }

    /// Whether both come of one load: the same ids, in state of the same shape. A switch may run a variant of the program that it was
    /// given (one that notes its steps), so addresses say nothing.
    pub fn is(&self, other: &Program) -> bool {
        Arc::ptr_eq(&self.origin.0, &other.origin.0)
    }

    /// The JSON it was loaded from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Translates the program to machine code, once; how many bytes it has, or what stands against it. Switches
    /// then run it, unless told otherwise ([`crate::MachineCode`]), and the interpreter where there is none.
    pub fn translate(&self) -> Result<usize, &str> {
        match self.native.get_or_init(|| Native::new(self)) {
            Ok(native) => Ok(native.bytes()),
            Err(why) => Err(why),
        }
    }
}
