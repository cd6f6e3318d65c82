//! Standard metadata, error codes, enums.

use super::json::{Node, Result};
use super::Loader;
use crate::ir::*;

impl Loader<'_> {
    pub(super) fn load_arch(&mut self, root: &Node) -> Result<()> {
        let names = self.names;
        let std = |f: &str| names.well_known(&format!("standard_metadata.{f}"));
        let intrinsic = |f: &str| names.well_known(&format!("intrinsic_metadata.{f}"));
        let queueing = |f: &str| names.well_known(&format!("queueing_metadata.{f}"));
        let arch = Arch {
            ingress_port: std("ingress_port"),
            packet_length: std("packet_length"),
            instance_type: std("instance_type"),
            egress_spec: std("egress_spec"),
            egress_port: std("egress_port"),
            parser_error: std("parser_error"),
            checksum_error: std("checksum_error"),
            ingress_global_timestamp: intrinsic("ingress_global_timestamp"),
            egress_global_timestamp: intrinsic("egress_global_timestamp"),
            mcast_grp: intrinsic("mcast_grp"),
            egress_rid: intrinsic("egress_rid"),
            priority: intrinsic("priority"),
            enq_timestamp: queueing("enq_timestamp"),
            enq_qdepth: queueing("enq_qdepth"),
            deq_timedelta: queueing("deq_timedelta"),
            deq_qdepth: queueing("deq_qdepth"),
            qid: queueing("qid"),
            queueing: ["enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth"].iter().all(|f| queueing(f).is_some()),
        };
        if self.program.ir.psa.is_some() {
            return self.load_enums(root);
        }
        let required = [
            ("ingress_port", arch.ingress_port),
            ("packet_length", arch.packet_length),
            ("instance_type", arch.instance_type),
            ("egress_spec", arch.egress_spec),
            ("egress_port", arch.egress_port),
        ];
        for (field, found) in required {
            match found {
                None => {
                    return Err(root
                        .err(format!("the program has no field standard_metadata.{field}"))
                        .hint("simple_switch needs it; compile for v1model, or add a field alias"))
                }
                Some(f) if f.width > 64 => return Err(root.err(format!("standard_metadata.{field} is wider than 64 bits"))),
                Some(_) => {}
            }
        }
        let others = [
            arch.parser_error,
            arch.checksum_error,
            arch.ingress_global_timestamp,
            arch.egress_global_timestamp,
            arch.mcast_grp,
            arch.egress_rid,
            arch.priority,
            arch.enq_timestamp,
            arch.enq_qdepth,
            arch.deq_timedelta,
            arch.deq_qdepth,
            arch.qid,
        ];
        if others.iter().flatten().any(|f| f.width > 64) {
            return Err(root.err("a standard metadata field is wider than 64 bits"));
        }
        self.program.ir.arch = arch;
        self.load_enums(root)
    }

    fn load_enums(&mut self, root: &Node) -> Result<()> {
        for node in root.list("enums")? {
            let mut entries = Vec::new();
            for entry in node.list("entries")? {
                let pair = entry.tuple(2)?;
                entries.push((pair[0].str()?.to_string(), pair[1].int()?));
            }
            self.program.ir.enums.push((node.get("name")?.str()?.to_string(), entries));
        }
        Ok(())
    }

    pub(super) fn load_errors(&mut self, root: &Node) -> Result<()> {
        let mut names: Vec<(u64, String)> = Vec::new();
        for node in root.list("errors")? {
            let pair = node.tuple(2)?;
            let value = pair[1].uint((1 << 31) - 2)?;
            if names.iter().any(|(v, _)| *v == value) {
                return Err(node.err(format!("two errors have the value {value}")));
            }
            names.push((value, pair[0].str()?.to_string()));
        }
        // Core errors the program does not list still need distinct numbers.
        let mut code = |name: &str| match names.iter().find(|(_, n)| n == name) {
            Some((v, _)) => *v,
            None => {
                let free = names.iter().map(|(v, _)| v + 1).max().unwrap_or(0);
                names.push((free, name.to_string()));
                free
            }
        };
        self.program.ir.errors = ErrorCodes {
            no_error: code("NoError"),
            packet_too_short: code("PacketTooShort"),
            stack_out_of_bounds: code("StackOutOfBounds"),
            header_too_short: code("HeaderTooShort"),
            parser_timeout: code("ParserTimeout"),
            parser_invalid_argument: code("ParserInvalidArgument"),
        };
        self.program.ir.error_names = names;
        Ok(())
    }
}
