//! Types [P4Runtime sec 8]: specifications in place, and the definitions of the named ones.

use std::collections::{BTreeSet, HashMap};

use fairlane_syntax::annotations::find;
use fairlane_syntax::ast::{Annotation, AnnotationBody, AnnotationToken, AnnotationTokenKind};
use fairlane_syntax::{Code, Diagnostic, Diagnostics};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::annotations::Written;
use super::text::Text;
use crate::control_plane::{ControlPlane, DataType, Param, TypeDefinition, TypeDefinitionKind};

type Fields = [(String, DataType, Vec<Annotation>)];

/// The types of a program, and which of them have been named so far.
pub(super) struct Types<'a> {
    by_name: HashMap<&'a str, &'a TypeDefinition>,
    used: BTreeSet<&'a str>,
    errors_used: bool,
}

/// What `@p4runtime_translation` asks for: the type as controllers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Translation {
    Bits(u32),
    String,
}

impl<'a> Types<'a> {
    pub fn new(plane: &'a ControlPlane) -> Self {
        let by_name = plane.types.iter().map(|definition| (definition.name.as_str(), definition)).collect();
        Types { by_name, used: BTreeSet::new(), errors_used: false }
    }

    /// The width that controllers see, in bits; 0 for none.
    pub fn width(&self, ty: &DataType, bits: u32) -> u32 {
        match ty {
            DataType::Error => 0,
            DataType::Newtype(name) => match self.by_name.get(name.as_str()).and_then(|d| translation(d)) {
                Some((_, Translation::Bits(bits))) => bits,
                Some((_, Translation::String)) => 0,
                None => bits,
            },
            _ => bits,
        }
    }

    /// The field `field` with the name of a new type; nothing for another type. The type's definition will be written.
    pub fn name(&mut self, ty: &DataType, field: &str, text: &mut Text) {
        self.note(ty);
        if let DataType::Newtype(name) = ty {
            named(field, name, text);
        }
    }

    /// The field `field` with the name of an enum, which only parameters of actions have.
    pub fn enum_name(&self, ty: &DataType, field: &str, text: &mut Text) {
        if let DataType::Enum(name) = ty {
            named(field, name, text);
        }
    }

    /// A `P4DataTypeSpec`. The definitions of the types in it will be written.
    pub fn spec(&mut self, field: &str, ty: &DataType, text: &mut Text) {
        self.note(ty);
        data_type_spec(field, ty, text, &self.by_name);
    }

    /// Remembers that a type is used, and the types that it is made of.
    fn note(&mut self, ty: &DataType) {
        match ty {
            DataType::Tuple(members) => members.iter().for_each(|member| self.note(member)),
            DataType::Stack(element, _) => self.note(element),
            DataType::Error => self.errors_used = true,
            DataType::Struct(name)
            | DataType::Header(name)
            | DataType::HeaderUnion(name)
            | DataType::Enum(name)
            | DataType::SerializableEnum(name)
            | DataType::Newtype(name) => {
                let Some((&name, &definition)) = self.by_name.get_key_value(name.as_str()) else { return };
                if !self.used.insert(name) {
                    return;
                }
                match &definition.kind {
                    TypeDefinitionKind::Struct(fields) | TypeDefinitionKind::HeaderUnion(fields) => {
                        fields.iter().for_each(|(_, ty, _)| self.note(ty));
                    }
                    TypeDefinitionKind::Newtype(_) => self.note(&self.underlying(definition)),
                    _ => {}
                }
            }
            DataType::Bits(_) | DataType::SignedBits(_) | DataType::Varbit(_) | DataType::Bool | DataType::String => {}
        }
    }

    /// The type at the end of a chain of new types.
    fn underlying(&self, definition: &TypeDefinition) -> DataType {
        let mut definition = definition;
        // Chains are finite in a checked program; the bound keeps a faulty one from hanging.
        for _ in 0..=self.by_name.len() {
            let TypeDefinitionKind::Newtype(ty) = &definition.kind else { break };
            match ty {
                DataType::Newtype(name) => match self.by_name.get(name.as_str()) {
                    Some(next) => definition = next,
                    None => break,
                },
                other => return other.clone(),
            }
        }
        DataType::Bool
    }

    /// The fields of `P4TypeInfo`, each map in the order of its keys.
    pub fn definitions(&mut self, text: &mut Text, diagnostics: &mut Diagnostics) {
        let used: Vec<&TypeDefinition> = self.used.iter().filter_map(|name| self.by_name.get(name).copied()).collect();
        let write = |map: &str, text: &mut Text, diagnostics: &mut Diagnostics| {
            for definition in &used {
                if map_of(&definition.kind) == map {
                    text.open(map);
                    text.string("key", &definition.name);
                    text.open("value");
                    self.definition(definition, text, diagnostics);
                    text.close();
                    text.close();
                }
            }
        };
        for map in ["structs", "headers", "header_unions", "enums"] {
            write(map, text, diagnostics);
        }
        if self.errors_used {
            let members = self.by_name.values().find_map(|definition| match &definition.kind {
                TypeDefinitionKind::Error(members) => Some(members),
                _ => None,
            });
            text.open("error");
            members.into_iter().flatten().for_each(|member| text.repeated_string("members", member));
            text.close();
        }
        for map in ["serializable_enums", "new_types"] {
            write(map, text, diagnostics);
        }
    }

    fn definition(&self, definition: &TypeDefinition, text: &mut Text, diagnostics: &mut Diagnostics) {
        match &definition.kind {
            TypeDefinitionKind::Struct(fields) => {
                for (name, ty, _) in fields {
                    text.open("members");
                    text.string("name", name);
                    data_type_spec("type_spec", ty, text, &self.by_name);
                    text.close();
                }
            }
            TypeDefinitionKind::Header(fields) => {
                let mut flat = Vec::new();
                flatten("", fields, &self.by_name, &mut flat, 0);
                for (name, ty) in flat {
                    text.open("members");
                    text.string("name", &name);
                    text.open("type_spec");
                    bitstring(&ty, text, &self.by_name);
                    text.close();
                    text.close();
                }
            }
            TypeDefinitionKind::HeaderUnion(fields) => {
                for (name, ty, _) in fields {
                    text.open("members");
                    text.string("name", name);
                    if let DataType::Header(header) = ty {
                        named("header", header, text);
                    }
                    text.close();
                }
            }
            TypeDefinitionKind::Enum(members) => {
                for member in members {
                    text.open("members");
                    text.string("name", member);
                    text.close();
                }
            }
            TypeDefinitionKind::SerializableEnum(bits, members) => {
                text.open("underlying_type");
                text.number("bitwidth", *bits);
                text.close();
                for (name, value) in members {
                    text.open("members");
                    text.string("name", name);
                    text.bytes("value", &padded(value, *bits));
                    text.close();
                }
            }
            TypeDefinitionKind::Error(_) => {}
            TypeDefinitionKind::Newtype(_) => self.new_type(definition, text, diagnostics),
        }
    }

    /// `P4NewTypeSpec`
    fn new_type(&self, definition: &TypeDefinition, text: &mut Text, diagnostics: &mut Diagnostics) {
        let underlying = self.underlying(definition);
        match (find(&definition.annotations, "p4runtime_translation"), translation(definition)) {
            (Some(annotation), None) => diagnostics.push(super::annotation_error(
                annotation.span,
                "p4runtime_translation",
                "a URI and `string` or `bit<W>`, as in `@p4runtime_translation(\"com.example/x\", bit<32>)`",
            )),
            (Some(annotation), Some((uri, to))) => {
                if !matches!(underlying, DataType::Bits(_)) {
                    let message = format!("`{}` is translated, so the type under it must be `bit<W>`", definition.name);
                    diagnostics.push(Diagnostic::error(Code::Annotation, annotation.span, message));
                }
                text.open("translated_type");
                text.string("uri", &uri);
                match to {
                    Translation::Bits(bits) => text.word("sdn_bitwidth", &bits.to_string()),
                    Translation::String => {
                        text.open("sdn_string");
                        text.close();
                    }
                }
                text.close();
            }
            (None, _) => data_type_spec("original_type", &underlying, text, &self.by_name),
        }
        let written = Written::of(&definition.annotations, &["p4runtime_translation"]);
        written.unstructured(text);
        written.structured(text);
    }
}

impl Types<'_> {
    /// The fields of a controller header; those of structs within it count one by one, by their path, with the annotations of the
    /// struct.
    pub fn flat_fields(&self, fields: &[Param]) -> Vec<Param> {
        let mut out = Vec::new();
        for field in fields {
            let DataType::Struct(_) = &field.ty else {
                out.push(field.clone());
                continue;
            };
            let mut inner = Vec::new();
            let fields = [(field.name.clone(), field.ty.clone(), Vec::new())];
            flatten("", &fields, &self.by_name, &mut inner, 0);
            out.extend(inner.into_iter().map(|(name, ty)| {
                let bits = bits(&ty, &self.by_name, 0);
                Param { name, annotations: field.annotations.clone(), bits, ty }
            }));
        }
        out
    }
}

/// The field of `P4TypeInfo` that holds definitions of this kind.
fn map_of(kind: &TypeDefinitionKind) -> &'static str {
    match kind {
        TypeDefinitionKind::Struct(_) => "structs",
        TypeDefinitionKind::Header(_) => "headers",
        TypeDefinitionKind::HeaderUnion(_) => "header_unions",
        TypeDefinitionKind::Enum(_) => "enums",
        TypeDefinitionKind::SerializableEnum(..) => "serializable_enums",
        TypeDefinitionKind::Error(_) => "error",
        TypeDefinitionKind::Newtype(_) => "new_types",
    }
}

/// `@p4runtime_translation("uri", string)`, `("uri", bit<32>)`, `("uri", 32)`
fn translation(definition: &TypeDefinition) -> Option<(String, Translation)> {
    let AnnotationBody::Unstructured(tokens) = &find(&definition.annotations, "p4runtime_translation")?.body else {
        return None;
    };
    let integer = |token: &AnnotationToken| match &token.kind {
        AnnotationTokenKind::Integer(literal) => literal.value.to_u32(),
        _ => None,
    };
    let (first, rest) = tokens.split_first()?;
    let AnnotationTokenKind::String(uri) = &first.kind else { return None };
    let to = match rest {
        [_, word] if &*word.text == "string" => Translation::String,
        [_, number] => Translation::Bits(integer(number)?),
        [_, word, _, number, _] if &*word.text == "bit" => Translation::Bits(integer(number)?),
        _ => return None,
    };
    Some((uri.to_string(), to))
}

fn named(field: &str, name: &str, text: &mut Text) {
    text.open(field);
    text.string("name", name);
    text.close();
}

fn data_type_spec(field: &str, ty: &DataType, text: &mut Text, types: &HashMap<&str, &TypeDefinition>) {
    text.open(field);
    match ty {
        DataType::Bits(_) | DataType::SignedBits(_) | DataType::Varbit(_) => {
            text.open("bitstring");
            bitstring(ty, text, types);
            text.close();
        }
        DataType::Bool => {
            text.open("bool");
            text.close();
        }
        DataType::Error => {
            text.open("error");
            text.close();
        }
        DataType::Tuple(members) => {
            text.open("tuple");
            members.iter().for_each(|member| data_type_spec("members", member, text, types));
            text.close();
        }
        DataType::Struct(name) => named("struct", name, text),
        DataType::Header(name) => named("header", name, text),
        DataType::HeaderUnion(name) => named("header_union", name, text),
        DataType::Enum(name) => named("enum", name, text),
        DataType::SerializableEnum(name) => named("serializable_enum", name, text),
        DataType::Newtype(name) => named("new_type", name, text),
        DataType::Stack(element, size) => {
            let (stack, member, name) = match &**element {
                DataType::HeaderUnion(name) => ("header_union_stack", "header_union", name.as_str()),
                DataType::Header(name) => ("header_stack", "header", name.as_str()),
                _ => ("header_stack", "header", ""),
            };
            text.open(stack);
            named(member, name, text);
            text.number("size", *size);
            text.close();
        }
        // P4Runtime has no strings; the checker keeps them out of what a control plane sees.
        DataType::String => {}
    }
    text.close();
}

/// The fields of a `P4BitstringLikeTypeSpec`. In headers, types that P4Runtime has no word for there count as the bits they take.
fn bitstring(ty: &DataType, text: &mut Text, types: &HashMap<&str, &TypeDefinition>) {
    let (kind, field, bits) = match ty {
        DataType::SignedBits(bits) => ("int", "bitwidth", *bits),
        DataType::Varbit(bits) => ("varbit", "max_bitwidth", *bits),
        _ => ("bit", "bitwidth", bits(ty, types, 0)),
    };
    text.open(kind);
    text.number(field, bits);
    text.close();
}

fn bits(ty: &DataType, types: &HashMap<&str, &TypeDefinition>, depth: usize) -> u32 {
    match ty {
        DataType::Bits(bits) | DataType::SignedBits(bits) | DataType::Varbit(bits) => *bits,
        DataType::Bool => 1,
        DataType::SerializableEnum(name) | DataType::Newtype(name) => match types.get(name.as_str()).map(|definition| &definition.kind) {
            Some(TypeDefinitionKind::SerializableEnum(bits, _)) => *bits,
            Some(TypeDefinitionKind::Newtype(ty)) if depth < types.len() => bits(ty, types, depth + 1),
            _ => 0,
        },
        _ => 0,
    }
}

/// The fields of a header, those of structs within it with their path.
fn flatten(path: &str, fields: &Fields, types: &HashMap<&str, &TypeDefinition>, out: &mut Vec<(String, DataType)>, depth: usize) {
    for (name, ty, _) in fields {
        let name = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let inner = match ty {
            DataType::Struct(inner) if depth < types.len() => types.get(inner.as_str()).map(|definition| &definition.kind),
            _ => None,
        };
        match inner {
            Some(TypeDefinitionKind::Struct(fields)) => flatten(&name, fields, types, out, depth + 1),
            _ => out.push((name, ty.clone())),
        }
    }
}

/// A value as big-endian bytes, with leading zeros up to its width. (P4Runtime 8.4 calls the shortest form canonical
/// and takes this one too; p4c writes this one.) A negative value, of a signed type, is its two's complement.
pub(super) fn padded(value: &BigInt, bits: u32) -> Vec<u8> {
    let modulus = BigInt::from(1) << bits;
    let value = ((value % &modulus) + &modulus) % &modulus;
    let (_, bytes) = value.to_bytes_be();
    let length = bits.div_ceil(8) as usize;
    let bytes = &bytes[bytes.len().saturating_sub(length)..];
    let mut out = vec![0; length - bytes.len()];
    out.extend_from_slice(bytes);
    out
}
