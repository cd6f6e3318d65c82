//! `header_types`, `headers`, stacks, unions, `field_aliases`: the layout of a packet's slots.

use std::collections::HashMap;

use super::json::{Node, Result};
use crate::ir::*;
use crate::words::Words;

/// Widest field, bits.
const MAX_WIDTH: u64 = 2048;
/// Most slots of one packet.
const MAX_SLOTS: usize = 1 << 20;

/// The extern objects whose state is a packet's own.
const STATEFUL: [&str; 2] = ["InternetChecksum", "Checksum"];

/// The layout with the names needed while loading.
#[derive(Default)]
pub struct Names {
    pub layout: Layout,
    pub types: HashMap<String, usize>,
    pub headers: HashMap<String, u32>,
    header_ids: HashMap<i64, u32>,
    pub stacks: HashMap<String, u32>,
    union_types: HashMap<String, usize>,
    pub unions: HashMap<String, u32>,
    union_ids: HashMap<i64, u32>,
    pub union_stacks: HashMap<String, u32>,
    /// Alias to header and field.
    pub aliases: HashMap<String, (String, String)>,
}

/// A field as the JSON refers to it.
#[derive(Debug, Clone, Copy)]
pub enum FieldName {
    Fixed(Field),
    /// Index of the variable-length field, and the header's validity slot.
    Varbit(u32, Slot),
}

/// The name of the metadata that holds the state of an extern object.
pub fn state_of(name: &str) -> String {
    format!("$state of {name}")
}

/// Names of the extern objects that have state of a packet.
fn stateful(root: &Node) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for node in root.list("extern_instances")? {
        if STATEFUL.contains(&node.get("type")?.str()?) {
            names.push(node.get("name")?.str()?.to_string());
        }
    }
    Ok(names)
}

impl Names {
    pub fn load(root: &Node) -> Result<Names> {
        let mut names = Names::default();
        names.load_types(root)?;
        names.load_headers(root)?;
        names.load_stacks(root)?;
        names.load_unions(root)?;
        names.load_aliases(root)?;
        names.add_states(root)?;
        names.place();
        Ok(names)
    }

    fn load_types(&mut self, root: &Node) -> Result<()> {
        for node in root.get("header_types")?.items()? {
            let name = node.get("name")?.str()?.to_string();
            let mut ty = HeaderType {
                name: name.clone(),
                fields: Vec::new(),
                slots: 0,
                bits: 0,
                varbit: None,
                max_bytes: match node.opt("max_length") {
                    Some(n) => n.uint(65535)? as u32,
                    None => 0,
                },
                words: None,
            };
            for field in node.get("fields")?.items()? {
                let parts = field.items()?;
                let (Some(fname), Some(width)) = (parts.first(), parts.get(1)) else {
                    return Err(field.err("a field is [name, width] or [name, width, signed]"));
                };
                let fname = fname.str()?.to_string();
                if ty.fields.iter().any(|f| f.name == fname) {
                    return Err(field.err(format!("header type '{name}' has two fields '{fname}'")));
                }
                let signed = parts.get(2).map_or(Ok(false), |n| n.bool())?;
                let saturating = parts.get(3).map_or(Ok(false), |n| n.bool())?;
                let varbit = width.v.as_str() == Some("*");
                if varbit && ty.varbit.is_some() {
                    return Err(field.err(format!("header type '{name}' has two variable-length fields")));
                }
                let bits = if varbit { 0 } else { width.uint(MAX_WIDTH)? as u32 };
                if bits == 0 && !varbit {
                    return Err(width.err("a field is at least one bit wide"));
                }
                if signed && bits == 1 {
                    return Err(width.err("a signed field is at least two bits wide"));
                }
                if varbit {
                    ty.varbit = Some(ty.fields.len());
                }
                ty.fields.push(FieldDef { name: fname, width: bits, signed, saturating, rel: ty.slots, offset: ty.bits, varbit });
                ty.slots += bits.div_ceil(64);
                ty.bits += bits;
            }
            ty.words = Words::new(ty.fields.iter().map(|f| (f.rel, (!f.varbit).then_some(f.width))));
            let at = self.layout.types.len();
            if self.types.insert(name.clone(), at).is_some() {
                return Err(node.err(format!("there are two header types '{name}'")));
            }
            self.layout.types.push(ty);
        }
        Ok(())
    }

    fn type_named(&self, node: &Node) -> Result<usize> {
        let name = node.str()?;
        self.types.get(name).copied().ok_or_else(|| node.err(format!("there is no header type '{name}'")))
    }

    fn load_headers(&mut self, root: &Node) -> Result<()> {
        for node in root.get("headers")?.items()? {
            let name = node.get("name")?.str()?.to_string();
            let ty = self.type_named(&node.get("header_type")?)?;
            let metadata = node.flag("metadata", false)?;
            let def = &self.layout.types[ty];
            if !metadata && !def.bits.is_multiple_of(8) {
                return Err(node
                    .err(format!("header '{name}' is {} bits long, which is no whole number of bytes", def.bits))
                    .hint("pad the header type to a multiple of 8 bits"));
            }
            let varbit = def.varbit.map(|_| {
                self.layout.varbits += 1;
                self.layout.varbits - 1
            });
            let at = self.layout.headers.len() as u32;
            let id = node.get("id")?.int()?;
            if self.header_ids.insert(id, at).is_some() {
                return Err(node.err(format!("two headers have the id {id}")));
            }
            if self.headers.insert(name.clone(), at).is_some() {
                return Err(node.err(format!("there are two headers '{name}'")));
            }
            self.layout.headers.push(Header {
                name,
                id,
                ty,
                metadata,
                base: 0,
                valid: 0,
                varbit,
                union: None,
                length: None,
                opaque: false,
            });
        }
        Ok(())
    }

    fn header_ids(&self, node: &Node) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        for item in node.items()? {
            let id = item.int()?;
            let at = *self.header_ids.get(&id).ok_or_else(|| item.err(format!("there is no header with id {id}")))?;
            ids.push(at);
        }
        Ok(ids)
    }

    fn load_stacks(&mut self, root: &Node) -> Result<()> {
        for node in root.list("header_stacks")? {
            let name = node.get("name")?.str()?.to_string();
            let ty = self.type_named(&node.get("header_type")?)?;
            let headers = self.header_ids(&node.get("header_ids")?)?;
            for &h in &headers {
                let header = &self.layout.headers[h as usize];
                if header.ty != ty || header.metadata {
                    return Err(node.err(format!("header '{}' cannot be in the stack '{name}' of another type", header.name)));
                }
            }
            let at = self.layout.stacks.len() as u32;
            if self.stacks.insert(name.clone(), at).is_some() {
                return Err(node.err(format!("there are two header stacks '{name}'")));
            }
            self.layout.stacks.push(Stack { name, id: node.id()?, ty, headers, next: 0 });
        }
        Ok(())
    }

    fn load_unions(&mut self, root: &Node) -> Result<()> {
        for node in root.list("header_union_types")? {
            let name = node.get("name")?.str()?.to_string();
            let mut members = Vec::new();
            for member in node.get("headers")?.items()? {
                let pair = member.tuple(2)?;
                members.push((pair[0].str()?.to_string(), self.type_named(&pair[1])?));
            }
            self.union_types.insert(name.clone(), self.layout.union_types.len());
            self.layout.union_types.push(UnionType { name, members });
        }
        for node in root.list("header_unions")? {
            let name = node.get("name")?.str()?.to_string();
            let ty = self.union_type(&node.get("union_type")?)?;
            let headers = self.header_ids(&node.get("header_ids")?)?;
            let members = &self.layout.union_types[ty].members;
            let fits =
                headers.len() == members.len() && headers.iter().zip(members).all(|(&h, m)| self.layout.headers[h as usize].ty == m.1);
            if !fits {
                return Err(node.err(format!("the headers of union '{name}' are not those of its type")));
            }
            let at = self.layout.unions.len();
            for &h in &headers {
                let header = &mut self.layout.headers[h as usize];
                if header.metadata || header.union.is_some() {
                    return Err(node.err(format!("header '{}' cannot be in the union '{name}'", header.name)));
                }
                header.union = Some(at);
            }
            self.unions.insert(name.clone(), at as u32);
            self.union_ids.insert(node.get("id")?.int()?, at as u32);
            self.layout.unions.push(Union { ty, headers });
        }
        for node in root.list("header_union_stacks")? {
            let name = node.get("name")?.str()?.to_string();
            let ty = self.union_type(&node.get("union_type")?)?;
            let mut unions = Vec::new();
            for item in node.get("header_union_ids")?.items()? {
                let id = item.int()?;
                let at = *self.union_ids.get(&id).ok_or_else(|| item.err(format!("there is no header union with id {id}")))?;
                if self.layout.unions[at as usize].ty != ty {
                    return Err(item.err("the union is of another type than the stack"));
                }
                unions.push(at);
            }
            self.union_stacks.insert(name.clone(), self.layout.union_stacks.len() as u32);
            self.layout.union_stacks.push(UnionStack { id: node.id()?, ty, unions, next: 0 });
        }
        Ok(())
    }

    fn union_type(&self, node: &Node) -> Result<usize> {
        let name = node.str()?;
        self.union_types.get(name).copied().ok_or_else(|| node.err(format!("there is no header union type '{name}'")))
    }

    fn load_aliases(&mut self, root: &Node) -> Result<()> {
        for node in root.list("field_aliases")? {
            let pair = node.tuple(2)?;
            let target = pair[1].tuple(2)?;
            let (header, field) = (target[0].str()?, target[1].str()?);
            self.field_or_varbit(&pair[1])?;
            self.aliases.insert(pair[0].str()?.to_string(), (header.to_string(), field.to_string()));
        }
        Ok(())
    }

    /// Extern objects with state of a packet: each has metadata of its own, zero when a pass begins.
    fn add_states(&mut self, root: &Node) -> Result<()> {
        let objects = stateful(root)?;
        if objects.is_empty() {
            return Ok(());
        }
        let field = FieldDef { name: "state".to_string(), width: 64, signed: false, saturating: false, rel: 0, offset: 0, varbit: false };
        let ty = self.layout.types.len();
        self.layout.types.push(HeaderType {
            name: "$state".to_string(),
            fields: vec![field],
            slots: 1,
            bits: 64,
            varbit: None,
            max_bytes: 0,
            words: None,
        });
        for object in objects {
            let name = state_of(&object);
            self.headers.insert(name.clone(), self.layout.headers.len() as u32);
            self.layout.headers.push(Header {
                id: 0,
                name,
                ty,
                metadata: true,
                base: 0,
                valid: 0,
                varbit: None,
                union: None,
                length: None,
                opaque: false,
            });
        }
        Ok(())
    }

    /// Gives every field its slot: metadata, validity and stack counters, headers; then a
    /// constant 1, the validity of metadata.
    fn place(&mut self) {
        let layout = &mut self.layout;
        let mut next = 0;
        for header in layout.headers.iter_mut().filter(|h| h.metadata) {
            header.base = next;
            next += layout.types[header.ty].slots;
        }
        layout.metadata_end = next;
        for header in layout.headers.iter_mut().filter(|h| !h.metadata) {
            header.valid = next;
            next += 1;
        }
        for stack in &mut layout.stacks {
            stack.next = next;
            next += 1;
        }
        for stack in &mut layout.union_stacks {
            stack.next = next;
            next += 1;
        }
        for header in layout.headers.iter_mut().filter(|h| !h.metadata) {
            header.base = next;
            next += layout.types[header.ty].slots;
        }
        layout.packet_end = next;
        for header in layout.headers.iter_mut().filter(|h| h.metadata) {
            header.valid = next;
        }
        layout.init = vec![0; next as usize];
        layout.init.push(1);
    }

    /// Refuses a layout too big to run.
    pub fn check_size(&self, root: &Node) -> Result<()> {
        if self.layout.init.len() > MAX_SLOTS {
            return Err(
                root.err(format!("the program needs {} slots per packet, at most {MAX_SLOTS} are possible", self.layout.init.len()))
            );
        }
        Ok(())
    }

    pub fn header(&self, node: &Node) -> Result<u32> {
        let name = node.str()?;
        self.headers.get(name).copied().ok_or_else(|| node.err(format!("there is no header '{name}'")))
    }

    pub fn stack(&self, node: &Node) -> Result<u32> {
        let name = node.str()?;
        self.stacks.get(name).copied().ok_or_else(|| node.err(format!("there is no header stack '{name}'")))
    }

    pub fn union(&self, node: &Node) -> Result<u32> {
        let name = node.str()?;
        self.unions.get(name).copied().ok_or_else(|| node.err(format!("there is no header union '{name}'")))
    }

    pub fn union_stack(&self, node: &Node) -> Result<u32> {
        let name = node.str()?;
        self.union_stacks.get(name).copied().ok_or_else(|| node.err(format!("there is no header union stack '{name}'")))
    }

    /// Field number `index` of header `h`.
    pub fn field_at(&self, h: u32, index: usize) -> Option<FieldName> {
        let header = &self.layout.headers[h as usize];
        let def = self.layout.types[header.ty].fields.get(index)?;
        Some(match (def.varbit, header.varbit) {
            (true, Some(v)) => FieldName::Varbit(v as u32, header.valid),
            _ => FieldName::Fixed(Field {
                slot: header.base + def.rel,
                width: def.width,
                signed: def.signed,
                saturating: def.saturating,
                valid: header.valid,
            }),
        })
    }

    /// `header.field` by name; `$valid$` is the header's validity.
    pub fn find(&self, header: &str, field: &str) -> Option<FieldName> {
        let h = *self.headers.get(header)?;
        let inst = &self.layout.headers[h as usize];
        if field == "$valid$" {
            // Always readable, hence the validity of a header that is always valid.
            return Some(FieldName::Fixed(Field {
                slot: inst.valid,
                width: 1,
                signed: false,
                saturating: false,
                valid: self.layout.packet_end,
            }));
        }
        let index = self.layout.types[inst.ty].fields.iter().position(|f| f.name == field)?;
        self.field_at(h, index)
    }

    /// `[header, field]`.
    pub fn field_or_varbit(&self, node: &Node) -> Result<FieldName> {
        let pair = node.tuple(2)?;
        let (header, field) = (pair[0].str()?, pair[1].str()?);
        if !self.headers.contains_key(header) {
            return Err(pair[0].err(format!("there is no header '{header}'")));
        }
        self.find(header, field).ok_or_else(|| pair[1].err(format!("header '{header}' has no field '{field}'")))
    }

    /// `[header, field]`, of fixed width.
    pub fn field(&self, node: &Node) -> Result<Field> {
        match self.field_or_varbit(node)? {
            FieldName::Fixed(field) => Ok(field),
            FieldName::Varbit(..) => Err(node.err("a variable-length field cannot be used here")),
        }
    }

    /// A field of a header type by name, of fixed width.
    pub fn field_of_type(&self, ty: usize, node: &Node) -> Result<FieldOfType> {
        let name = node.str()?;
        let def = &self.layout.types[ty];
        let index = def
            .fields
            .iter()
            .position(|f| f.name == name)
            .ok_or_else(|| node.err(format!("header type '{}' has no field '{name}'", def.name)))?;
        self.field_of_type_at(ty, index as u64, node)
    }

    /// A field of a header type by position, of fixed width.
    pub fn field_of_type_at(&self, ty: usize, index: u64, node: &Node) -> Result<FieldOfType> {
        let def = &self.layout.types[ty];
        match def.fields.get(index as usize) {
            Some(f) if !f.varbit => Ok(FieldOfType { rel: f.rel, width: f.width, signed: f.signed, saturating: f.saturating }),
            Some(_) => Err(node.err("a variable-length field cannot be used here")),
            None => Err(node.err(format!("header type '{}' has no field number {index}", def.name))),
        }
    }

    /// A metadata field `simple_switch` knows as `name` (`header.field`), by alias or directly.
    pub fn well_known(&self, name: &str) -> Option<Field> {
        let (header, field) = match self.aliases.get(name) {
            Some((h, f)) => (h.as_str(), f.as_str()),
            None => name.split_once('.')?,
        };
        match self.find(header, field) {
            Some(FieldName::Fixed(f)) => Some(f),
            _ => None,
        }
    }
}
