//! A loaded program, and its machine code.

use std::ops::Deref;
use std::sync::OnceLock;

use crate::definition::Definition;
use crate::error::LoadError;
use crate::exec::native::Native;

/// A checked program, ready to be run by any number of [`crate::Switch`]es.
#[derive(Debug, Default)]
pub struct Program {
    definition: Definition,
    source: String,
    pub(crate) native: OnceLock<Result<Native, String>>,
}

impl Deref for Program {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        &self.definition
    }
}

impl Program {
    /// Loads and checks BMv2 JSON (format 2.x), from p4c or from our compiler.
    pub fn from_json(text: &str) -> Result<Program, LoadError> {
        Ok(Program { definition: crate::load::load(text, false)?, source: text.to_string(), native: OnceLock::new() })
    }

    /// The same program with instructions that note its conditions and actions.
    pub(crate) fn observed(&self) -> Option<Program> {
        let definition = crate::load::load(&self.source, true).ok()?;
        Some(Program { definition, source: self.source.clone(), native: OnceLock::new() })
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
