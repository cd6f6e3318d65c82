//! Machine code for a program: parser, checksums, pipelines with their actions, deparser.
//!
//! [`steps`] lists what a pass does, [`places`] says which values are at hand and which must be in
//! memory, [`emit`], [`ops`] and [`frame`] write it in Cranelift's language, [`calls`] is the boundary that the code is
//! entered and left by. What is rare (tables, wide values, headers of variable length) is a call to
//! the interpreter's own function.

mod calls;
mod emit;
mod frame;
mod ops;
mod places;
mod steps;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use cranelift_codegen::ir::{types, AbiParam};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::Context as Compiled;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{default_libcall_names, FuncId, Linkage, Module};

use super::deparser;
use super::packet::Packet;
use super::state::State;
use crate::definition::Definition;
use crate::ir::*;
use crate::load::effects::Context;
use calls::Code;
use emit::{emit, EMITTED};
use steps::Steps;

const INGRESS: usize = 0;
const EGRESS: usize = 1;
const DEPARSER: usize = 2;

/// A program's machine code.
pub struct Native {
    code: Code,
    bytes: usize,
}

impl std::fmt::Debug for Native {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Native({} bytes)", self.bytes)
    }
}

impl Native {
    /// Translates a program; what stands against it otherwise: no translator for this processor, no
    /// memory that may be executed, code that jumps back.
    pub fn new(program: &Definition) -> Result<Native, String> {
        if program.ir.psa.is_some() {
            return Err("programs for PSA are interpreted".to_string());
        }
        let again = |what: &str| format!("the {what} has a loop that is not translated");
        let ingress = Steps::ingress(program).ok_or_else(|| again("ingress"))?;
        let egress = Steps::egress(program).ok_or_else(|| again("egress"))?;
        let deparser = Steps::deparser(program).ok_or_else(|| again("deparser"))?;
        let ir = &program.ir;
        compile(program, &[(&ingress, &ir.ingress_live), (&egress, &ir.egress_live), (&deparser, &ir.egress_live)])
    }

    /// Bytes of machine code.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Parser, verification of checksums, ingress.
    #[inline]
    pub fn ingress(&self, program: &Definition, st: &mut State, pkt: &mut Packet) {
        self.code.call(INGRESS, program, st, pkt);
    }

    #[inline]
    pub fn egress(&self, program: &Definition, st: &mut State, pkt: &mut Packet) {
        self.code.call(EGRESS, program, st, pkt);
    }

    /// [`deparser::deparse`].
    #[inline]
    pub fn deparse(&self, program: &Definition, st: &mut State, pkt: &mut Packet, spare: &mut Vec<Vec<u8>>) -> Vec<u8> {
        // Headers are written over the frame only as far as it reaches.
        if pkt.offset > pkt.len || pkt.len > pkt.buf.len() {
            return deparser::deparse(&program.ir, st, pkt, spare);
        }
        match self.code.call(DEPARSER, program, st, pkt) {
            EMITTED => deparser::in_place(pkt),
            _ => deparser::anew(&program.ir, &program.ir.deparser.emits, pkt, spare),
        }
    }
}

/// Translates passes, each with what is read of the packet after it.
fn compile(program: &Definition, passes: &[(&Steps, &[Slot])]) -> Result<Native, String> {
    if usize::BITS != 64 {
        return Err("machine code is made for 64-bit processors only".to_string());
    }
    let mut flags = settings::builder();
    for (name, value) in [
        ("opt_level", "speed"),
        ("use_colocated_libcalls", "false"),
        ("is_pic", "false"),
        // Windows gives a stack its pages in their order.
        ("enable_probestack", if cfg!(windows) { "true" } else { "false" }),
        ("probestack_strategy", "inline"),
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
    ] {
        flags.set(name, value).map_err(|e| e.to_string())?;
    }
    let isa = cranelift_native::builder()
        .map_err(|e| format!("there is no translator for this processor: {e}"))?
        .finish(settings::Flags::new(flags))
        .map_err(|e| e.to_string())?;
    let mut builder = JITBuilder::with_isa(isa, default_libcall_names());
    calls::register(&mut builder);
    let mut module = JITModule::new(builder);
    let constants: HashMap<Slot, u64> = program.ir.constants.iter().copied().collect();
    let context = Context::of_program(program);
    let mut compiled = module.make_context();
    let mut scratch = FunctionBuilderContext::new();
    let mut functions = Vec::new();
    let mut bytes = 0;
    for (i, (steps, live)) in passes.iter().enumerate() {
        let mut sig = module.make_signature();
        sig.params = vec![AbiParam::new(types::I64); 6];
        sig.returns = vec![AbiParam::new(types::I64)];
        compiled.func.signature = sig;
        let b = FunctionBuilder::new(&mut compiled.func, &mut scratch);
        emit(b, &mut module, program, &context, steps, live, &constants);
        functions.push(define(&mut module, &mut compiled, i)?);
        bytes += compiled.compiled_code().map_or(0, |c| c.code_buffer().len());
        module.clear_context(&mut compiled);
    }
    module.finalize_definitions().map_err(|e| format!("the code cannot be made executable: {e}"))?;
    Ok(Native { code: Code::new(module, &functions), bytes })
}

fn define(module: &mut JITModule, compiled: &mut Compiled, i: usize) -> Result<FuncId, String> {
    let wrong = |e: cranelift_module::ModuleError| format!("{e:?}");
    let name = format!("pass{i}");
    let id = module.declare_function(&name, Linkage::Local, &compiled.func.signature).map_err(wrong)?;
    module.define_function(id, compiled).map_err(wrong)?;
    Ok(id)
}
