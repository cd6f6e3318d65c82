//! What a program for `psa_switch` has: metadata by name, extern objects, and the lists of fields that deparsers hand on.

use std::collections::HashMap;

use super::json::{Node, Result};
use super::layout::{state_of, FieldName, Names};
use super::Loader;
use crate::exec::hash::{self, Algo};
use crate::ir::*;

/// An extern object that a primitive may name; counters, meters and registers have names of their own.
#[derive(Debug, Clone, Copy)]
pub enum Object {
    Hash(Algo),
    /// The sum so far.
    InternetChecksum(Field),
    /// The value so far.
    Checksum(Field, Algo),
}

/// Whether the program is one for `psa_switch`.
pub fn is_psa(names: &Names) -> bool {
    names.headers.contains_key("psa_ingress_output_metadata")
}

/// An attribute of an extern object.
pub fn attribute<'a>(object: &Node<'a>, name: &str) -> Result<Node<'a>> {
    for item in object.list("attribute_values")? {
        if item.get("name")?.str()? == name {
            return item.get("value");
        }
    }
    Err(object.err(format!("the attribute '{name}' is missing")))
}

/// An attribute that is a number: hexadecimal, or, as p4c writes some, plain.
pub fn number(object: &Node, name: &str, max: u64) -> Result<u64> {
    let value = attribute(object, name)?;
    if value.v.is_u64() {
        return value.uint(max);
    }
    match u64::try_from(value.hex()?) {
        Ok(n) if n <= max => Ok(n),
        _ => Err(value.err(format!("at most {max} is possible"))),
    }
}

impl Loader<'_> {
    /// The extern objects; any of a type that is not known is refused.
    pub(super) fn load_externs(&mut self, root: &Node) -> Result<()> {
        for node in root.list("extern_instances")? {
            let name = node.get("name")?.str()?;
            let ty = node.get("type")?;
            let algorithm = || -> Result<Algo> {
                let algo = attribute(&node, "algo")?;
                hash::by_name(algo.str()?).ok_or_else(|| {
                    algo.err(format!("there is no algorithm '{}'", algo.v.as_str().unwrap_or("?")))
                        .hint(format!("known are {}", hash::NAMES))
                })
            };
            let state = || match self.names.find(&state_of(name), "state") {
                Some(FieldName::Fixed(f)) => Ok(f),
                _ => Err(node.err("two extern objects have this name")),
            };
            let object = match ty.str()? {
                "Counter" | "Meter" => continue,
                "Hash" => Object::Hash(algorithm()?),
                "InternetChecksum" => Object::InternetChecksum(state()?),
                "Checksum" => Object::Checksum(state()?, algorithm()?),
                other => {
                    return Err(node
                        .err(format!("the extern instance '{name}' of type '{other}' is not supported"))
                        .hint("programs for v1model have none, those for PSA Counter, Meter, Hash, InternetChecksum and Checksum"))
                }
            };
            self.externs.insert(name.to_string(), object);
        }
        Ok(())
    }

    /// Parser, deparser and metadata of ingress.
    pub(super) fn load_psa(&mut self, root: &Node) -> Result<()> {
        let parser = self.parser_named(root, "ingress_parser")?;
        let deparser = self.deparser_named(root, "ingress_deparser")?;
        let names = self.names;
        let field = |path: &str| match names.well_known(path) {
            Some(f) if f.width <= 64 => Ok(f),
            Some(_) => Err(root.err(format!("{path} is wider than 64 bits"))),
            None => Err(root.err(format!("the program has no field {path}")).hint("psa_switch needs it; compile for PSA")),
        };
        let input = |header: &str, port: &str| -> Result<PsaInput> {
            Ok(PsaInput { port: field(&format!("{header}.{port}"))?, path: field(&format!("{header}.packet_path"))? })
        };
        let psa = Psa {
            parser,
            deparser,
            ingress_parser: input("psa_ingress_parser_input_metadata", "ingress_port")?,
            ingress: input("psa_ingress_input_metadata", "ingress_port")?,
            ingress_timestamp: field("psa_ingress_input_metadata.ingress_timestamp")?,
            ingress_error: field("psa_ingress_input_metadata.parser_error")?,
            class_of_service: field("psa_ingress_output_metadata.class_of_service")?,
            clone: field("psa_ingress_output_metadata.clone")?,
            clone_session_id: field("psa_ingress_output_metadata.clone_session_id")?,
            drop: field("psa_ingress_output_metadata.drop")?,
            resubmit: field("psa_ingress_output_metadata.resubmit")?,
            multicast_group: field("psa_ingress_output_metadata.multicast_group")?,
            egress_port: field("psa_ingress_output_metadata.egress_port")?,
            egress_parser: input("psa_egress_parser_input_metadata", "egress_port")?,
            egress: input("psa_egress_input_metadata", "egress_port")?,
            egress_class_of_service: field("psa_egress_input_metadata.class_of_service")?,
            instance: field("psa_egress_input_metadata.instance")?,
            egress_timestamp: field("psa_egress_input_metadata.egress_timestamp")?,
            egress_error: field("psa_egress_input_metadata.parser_error")?,
            egress_clone: field("psa_egress_output_metadata.clone")?,
            egress_clone_session_id: field("psa_egress_output_metadata.clone_session_id")?,
            egress_drop: field("psa_egress_output_metadata.drop")?,
            deparser_port: field("psa_egress_deparser_input_metadata.egress_port")?,
            normal_meta: self.handed_on(root, "psa_normal_meta")?,
            clone_i2e_meta: self.handed_on(root, "psa_clone_i2e_meta")?,
            resubmit_meta: self.handed_on(root, "psa_resubmit_meta")?,
            recirculate_meta: self.handed_on(root, "psa_recirculate_meta")?,
            clone_e2e_meta: self.handed_on(root, "psa_clone_e2e_meta")?,
        };
        self.program.ir.psa = Some(Box::new(psa));
        Ok(())
    }

    /// The field list of that name; none hands nothing on, as `psa_switch` does always.
    fn handed_on(&self, root: &Node, name: &str) -> Result<Vec<Field>> {
        for node in root.list("field_lists")? {
            if node.get("name")?.str()? == name {
                let elements = node.get("elements")?.items()?;
                return elements.iter().map(|e| self.names.field(&e.get("value")?)).collect();
            }
        }
        Ok(Vec::new())
    }
}

/// The objects by name.
pub type Objects = HashMap<String, Object>;
