//! STF, the P4 community's packet-test format: a script of table entries, packets in, packets expected.
//!
//! ```text
//! add TABLE [PRIORITY] KEY:VALUE... ACTION(ARG:VALUE, ...) [= NAME]     setdefault TABLE ACTION(...)
//! packet PORT HEX...        expect PORT [HEX... [$]]                    no_packet
//! check_counter NAME(INDEX) [packets|bytes ==|!=|<|<=|>|>= N]           wait        remove all
//! mirroring_add SESSION PORT    mc_mgrp_create GROUP    mc_node_create RID PORT...    mc_node_associate GROUP NODE
//! act_prof_create_member PROFILE ACTION ARG...    act_prof_create_group PROFILE
//! act_prof_add_member_to_group PROFILE MEMBER GROUP
//! table_indirect_add TABLE KEY... => MEMBER    table_indirect_add_with_group TABLE KEY... => GROUP
//! counter_write, register_write, register_reset, meter_set_rates, meter_array_set_rates, ...
//! ```
//!
//! [`read`] turns text into [`Script`]; [`run`] plays it against a [`fairlane_pipeline::Program`] in virtual time and
//! says what differs. Outputs are compared at the end, per port, in order; every port that the script names must get
//! exactly the packets expected of it. `expect` matches a prefix, `$` at its end asks for the exact length, `*` is any
//! nibble, and without data any packet will do. A larger priority wins.

#![forbid(unsafe_code)]

mod compare;
mod coverage;
mod files;
mod names;
mod profiles;
mod read;
pub mod replay;
mod run;
mod sources;
mod value;
mod why;

pub use compare::{Difference, Pattern};
pub use coverage::Coverage;
pub use files::{load, play, play_files, Played};
pub use read::{read, ActionText, Command, Comparison, CounterUnit, KeyText, ReadError, Script, Statement};
pub use run::{run, run_observed, Outcome, Player, RunError};
pub use why::{explained, why};
