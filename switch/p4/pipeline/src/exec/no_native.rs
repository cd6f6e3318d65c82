//! Where no machine code can be made: every program is interpreted.

use super::packet::Packet;
use super::state::State;
use crate::definition::Definition;

/// There is none.
#[derive(Debug)]
pub enum Native {}

impl Native {
    pub fn new(_: &Definition) -> Result<Native, String> {
        Err("WebAssembly cannot be written by WebAssembly: programs are interpreted".to_string())
    }

    pub fn bytes(&self) -> usize {
        match *self {}
    }

    pub fn ingress(&self, _: &Definition, _: &mut State, _: &mut Packet) {
        match *self {}
    }

    pub fn egress(&self, _: &Definition, _: &mut State, _: &mut Packet) {
        match *self {}
    }

    pub fn deparse(&self, _: &Definition, _: &mut State, _: &mut Packet, _: &mut Vec<Vec<u8>>) -> Vec<u8> {
        match *self {}
    }
}
