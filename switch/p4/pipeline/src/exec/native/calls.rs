//! The boundary between machine code and Rust: all of this crate's `unsafe` is in this file.
//!
//! What makes it sound:
//!
//! - Machine code is made by [`super::compile`] alone, for one program, and is called by [`Code::call`] with
//!   the state and a packet of that program. Both have been laid out by it, so that every slot,
//!   register, counter and table the code names exists: their numbers are constants of the program,
//!   which the loader checked.
//! - Slots are `u64`s of [`Packet::slots`], whose length never changes. Cells of registers and
//!   counters are reached through [`State::addresses`]; their number never changes either, and the
//!   code compares every index with it. Fields of [`Packet`] and [`State`] are found by `offset_of!`.
//! - The frame is read below [`Packet::len`] and written below [`Packet::offset`], both of which are
//!   at most the buffer's length; the code compares before it goes on.
//! - The code keeps no address beyond the call. The functions it calls back get the three references
//!   of [`Env`] for their own time; the code reads again what they may have changed.
//! - Those functions are the interpreter's own. They do not panic; if one did, `extern "C"` ends the
//!   process instead of unwinding through frames that cannot be unwound.

#![allow(unsafe_code)]

use std::sync::Mutex;

use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::FuncId;

use crate::definition::Definition;
use crate::exec::packet::Packet;
use crate::exec::state::State;
use crate::exec::{calc, control, deparser, headers, heavy, parser};

/// What a lookup found is no code to run.
pub const FOUND_NOTHING: u32 = u32::MAX;
/// What [`Helper::Select`] returns when the parser has ended.
pub const NO_STATE: u64 = u64::MAX;

/// What machine code hands back to the functions it calls.
#[repr(C)]
struct Env {
    program: *const Definition,
    state: *mut State,
    packet: *mut Packet,
}

type Function = extern "C" fn(*mut Env, u64, u64, u64) -> u64;
type Entry =
    extern "C" fn(env: *mut Env, slots: *mut u64, frame: *mut u8, packet: *mut Packet, state: *mut State, addresses: *const usize) -> u64;

macro_rules! helpers {
    ($($Name:ident $function:ident ($ir:ident, $program:ident, $st:ident, $pkt:ident, $a:ident, $b:ident) $body:block)*) => {
        /// A function that machine code calls.
        #[derive(Debug, Clone, Copy)]
        pub enum Helper {
            $($Name,)*
        }

        impl Helper {
            pub fn name(self) -> &'static str {
                match self {
                    $(Helper::$Name => concat!("fairlane_", stringify!($function)),)*
                }
            }
        }

        /// Tells the translator where they are.
        pub fn register(builder: &mut JITBuilder) {
            $(
                let f: Function = $function;
                builder.symbol(Helper::$Name.name(), f as *const u8);
            )*
        }

        $(
            #[allow(unused_variables)]
            extern "C" fn $function(env: *mut Env, $a: u64, $b: u64, _: u64) -> u64 {
                // SAFETY: `Code::call` made `env` of three references that outlive the call and that
                // it does not use meanwhile; machine code holds none of its own.
                let ($program, $st, $pkt) = unsafe {
                    let env = &mut *env;
                    (&*env.program, &mut *env.state, &mut *env.packet)
                };
                let $ir = &$program.ir;
                $body
            }
        )*
    };
}

helpers! {
    Lookup lookup(ir, program, st, pkt, table, b) {
        let (code, next) = control::find(program, st, pkt, table as usize);
        let start = if code.start < code.end { code.start } else { FOUND_NOTHING };
        u64::from(next) << 32 | u64::from(start)
    }
    LookupNarrow lookup_narrow(ir, program, st, pkt, table, key) {
        let (code, next) = control::find_narrow(program, st, pkt, table as usize, key);
        let start = if code.start < code.end { code.start } else { FOUND_NOTHING };
        u64::from(next) << 32 | u64::from(start)
    }
    Compute compute(ir, program, st, pkt, calculation, b) {
        calc::compute(ir, st, pkt, calculation as u32)
    }
    StackLast stack_last(ir, program, st, pkt, stack, rel) {
        let stack = &ir.layout.stacks[stack as usize];
        let last = pkt.slots[stack.next as usize].checked_sub(1);
        match last.and_then(|i| stack.headers.get(i as usize)) {
            Some(&h) => pkt.slots[ir.layout.headers[h as usize].base as usize + rel as usize],
            None => 0,
        }
    }
    AddHeader add_header(ir, program, st, pkt, h, b) {
        headers::add_header(ir, pkt, h as u32);
        0
    }
    RemoveHeader remove_header(ir, program, st, pkt, h, b) {
        headers::remove_header(ir, pkt, h as u32);
        0
    }
    Meter meter(ir, program, st, pkt, meter, idx) {
        let now = st.now;
        match st.meters[meter as usize].get_mut(idx as usize) {
            Some(cell) => cell.colour(now, pkt.ingress_length),
            None => u64::MAX,
        }
    }
    Random random(ir, program, st, pkt, lo, hi) {
        st.rng.between(lo, hi)
    }
    Stops stops(ir, program, st, pkt, a, b) {
        (pkt.exit || pkt.failed.is_some()).into()
    }
    Heavy heavy_op(ir, program, st, pkt, i, b) {
        heavy::run(ir, st, pkt, &ir.heavy[i as usize]);
        0
    }
    ParserOp parser_op(ir, program, st, pkt, state, at) {
        let op = &ir.parser.states[state as usize].ops[at as usize];
        match parser::run_op(ir, st, pkt, op) {
            Ok(()) => 0,
            Err(error) => {
                pkt.error = error;
                1
            }
        }
    }
    Select select(ir, program, st, pkt, state, b) {
        match parser::select(ir, st, pkt, &ir.parser.states[state as usize]) {
            Ok(next) => next.map_or(NO_STATE, u64::from),
            Err(error) => {
                pkt.error = error;
                NO_STATE
            }
        }
    }
    VarbitLength varbit_length(ir, program, st, pkt, i, b) {
        pkt.varbit(ir, ir.deparser.emits[i as usize].header).len() as u64
    }
    Overwrite overwrite(ir, program, st, pkt, i, at) {
        let mut frame = std::mem::take(&mut pkt.buf);
        let n = deparser::overwrite(ir, st, pkt, &ir.deparser.emits[i as usize], &mut frame, at as usize);
        pkt.buf = frame;
        n as u64
    }
}

/// The code of a program's passes, and the memory it is in.
pub struct Code {
    /// Taken when this is dropped.
    module: Mutex<Option<JITModule>>,
    entries: Vec<Entry>,
}

impl Code {
    /// The finished functions of a module. Their signature is that of [`Entry`].
    pub fn new(module: JITModule, functions: &[FuncId]) -> Code {
        let entry = |id: &FuncId| {
            let code = module.get_finalized_function(*id);
            // SAFETY: the function was declared with this signature in `compile`.
            unsafe { std::mem::transmute::<*const u8, Entry>(code) }
        };
        Code { entries: functions.iter().map(entry).collect(), module: Mutex::new(Some(module)) }
    }

    /// Runs one pass. `program` is what the code was made from, `st` and `pkt` are of that program.
    #[inline]
    pub fn call(&self, pass: usize, program: &Definition, st: &mut State, pkt: &mut Packet) -> u64 {
        let (slots, frame) = (pkt.slots.as_mut_ptr(), pkt.buf.as_mut_ptr());
        let addresses = st.addresses.as_ptr();
        let (state, packet): (*mut State, *mut Packet) = (st, pkt);
        let mut env = Env { program, state, packet };
        self.entries[pass](&mut env, slots, frame, packet, state, addresses)
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        let module = self.module.get_mut().map(Option::take);
        if let Ok(Some(module)) = module {
            // SAFETY: the only copies of the functions' addresses are `entries`, which go with it.
            unsafe { module.free_memory() };
        }
    }
}
