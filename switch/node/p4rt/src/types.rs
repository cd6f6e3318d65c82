//! Values of P4 types as P4Runtime carries them: bytestrings of key fields and parameters, and `P4Data` (P4Runtime specification
//! 1.4, sections "Representation of Arbitrary P4 Types" and "User-defined types").
//!
//! The data plane knows a `P4Data` as the list of its scalar members in order ("leaves").

use fairlane_pipeline::Value;

use crate::bytes;
use crate::proto::p4::config::v1 as config;
use crate::proto::p4::v1 as p4;
use crate::status::{Result, Status};

use config::p4_data_type_spec::TypeSpec;
use p4::p4_data::Data;

/// How a scalar of the data plane is written by clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Encoding {
    /// As itself, in the data plane's width.
    Bits,
    /// A type with `@p4runtime_translation(uri, N)`: the same number in `N` bits.
    SdnBits(u32),
    /// A type with `@p4runtime_translation(uri, string)`: the number in decimal digits.
    SdnString,
}

/// A scalar: its width in the data plane, and how clients write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar {
    /// Width in the data plane, in bits.
    pub width: u32,
    /// How clients write it.
    pub encoding: Encoding,
}

impl Scalar {
    /// A scalar that is not translated.
    pub fn bits(width: u32) -> Scalar {
        Scalar { width, encoding: Encoding::Bits }
    }

    /// Reads what a client wrote.
    ///
    /// # Errors
    /// INVALID_ARGUMENT when it does not fit.
    pub fn decode(&self, text: &[u8]) -> Result<Value> {
        let value = match self.encoding {
            Encoding::Bits => return bytes::decode(text, self.width),
            Encoding::SdnBits(sdn) => bytes::decode(text, sdn)?,
            Encoding::SdnString => std::str::from_utf8(text)
                .ok()
                // Only canonical digits, so that reads give back what was written.
                .filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()) && (*digits == "0" || !digits.starts_with('0')))
                .and_then(Value::parse)
                .ok_or_else(|| {
                    Status::invalid(format!(
                        "the SDN string {:?} has no translation: write the data plane's number in decimal",
                        String::from_utf8_lossy(text)
                    ))
                })?,
        };
        if value.bit_len() > self.width {
            return Err(Status::invalid(format!(
                "the translated value {value} needs {} bits; the data plane's width is {} bits",
                value.bit_len(),
                self.width
            )));
        }
        Ok(value)
    }

    /// Writes a value for clients, in canonical form.
    pub fn encode(&self, value: &Value) -> Vec<u8> {
        match self.encoding {
            Encoding::SdnString => match value.to_u128() {
                Some(number) => number.to_string().into_bytes(),
                None => value.to_string().into_bytes(),
            },
            Encoding::Bits | Encoding::SdnBits(_) => bytes::encode(value),
        }
    }
}

/// How clients write a scalar whose P4Info says `bitwidth` and maybe `type_name`.
///
/// # Errors
/// A sentence, when the type is not described.
pub fn encoding(
    bitwidth: i32,
    type_name: Option<&config::P4NamedType>,
    types: &config::P4TypeInfo,
) -> std::result::Result<(Option<u32>, Encoding), String> {
    let own = u32::try_from(bitwidth).map_err(|_| format!("bitwidth {bitwidth} is negative"))?;
    let Some(name) = type_name else { return Ok((Some(own), Encoding::Bits)) };
    use config::p4_new_type_spec::Representation;
    use config::p4_new_type_translation::SdnType;
    // Serializable enums are named too, and are what they are.
    let Some(new_type) = types.new_types.get(&name.name) else { return Ok((Some(own), Encoding::Bits)) };
    match &new_type.representation {
        Some(Representation::TranslatedType(translation)) => match &translation.sdn_type {
            Some(SdnType::SdnBitwidth(width)) => {
                let width = u32::try_from(*width).map_err(|_| format!("type {}: sdn_bitwidth {width} is negative", name.name))?;
                Ok((None, Encoding::SdnBits(width)))
            }
            Some(SdnType::SdnString(_)) => Ok((None, Encoding::SdnString)),
            None => Err(format!("type {}: the translation has neither sdn_bitwidth nor sdn_string", name.name)),
        },
        _ => Ok((Some(own), Encoding::Bits)),
    }
}

/// A P4 type, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataType {
    /// `bit<W>`, or a translated type.
    Bits(Scalar),
    /// `int<W>`.
    Int(u32),
    /// `bool`.
    Bool,
    /// A struct with its members.
    Struct(Vec<DataType>),
    /// A tuple with its members.
    Tuple(Vec<DataType>),
    /// A header with its members, each `Bits` or `Int`.
    Header(Vec<DataType>),
    /// A serializable enum of this width.
    EnumValue(u32),
}

/// Named types nested deeper than this are taken for a cycle.
const MAX_DEPTH: usize = 32;

impl DataType {
    /// Resolves a type of P4Info.
    ///
    /// # Errors
    /// A sentence that names the type, when it is not described or has no representation in the data plane.
    pub fn resolve(spec: &config::P4DataTypeSpec, types: &config::P4TypeInfo) -> std::result::Result<DataType, String> {
        resolve(spec, types, 0)
    }

    /// Appends the widths of the leaves, in bits.
    pub fn widths(&self, out: &mut Vec<u32>) {
        match self {
            DataType::Bits(scalar) => out.push(scalar.width),
            DataType::Int(width) | DataType::EnumValue(width) => out.push(*width),
            DataType::Bool => out.push(1),
            DataType::Struct(members) | DataType::Tuple(members) | DataType::Header(members) => {
                members.iter().for_each(|member| member.widths(out));
            }
        }
    }

    /// Gives translated leaves the widths that the data plane has; the others keep theirs.
    pub(crate) fn set_translated_widths(&mut self, widths: &mut impl Iterator<Item = u32>) {
        match self {
            DataType::Bits(scalar) => {
                if let (Some(width), true) = (widths.next(), scalar.encoding != Encoding::Bits) {
                    scalar.width = width;
                }
            }
            DataType::Int(_) | DataType::EnumValue(_) | DataType::Bool => {
                widths.next();
            }
            DataType::Struct(members) | DataType::Tuple(members) | DataType::Header(members) => {
                members.iter_mut().for_each(|member| member.set_translated_widths(widths));
            }
        }
    }

    /// Makes a message of leaves; missing ones are zero.
    pub fn encode(&self, leaves: &mut dyn Iterator<Item = &Value>) -> p4::P4Data {
        let zero = Value::from(0u64);
        let data = match self {
            DataType::Bits(scalar) => Data::Bitstring(scalar.encode(leaves.next().unwrap_or(&zero))),
            DataType::Int(width) => Data::Bitstring(bytes::encode_signed(leaves.next().unwrap_or(&zero), *width)),
            DataType::Bool => Data::Bool(leaves.next().is_some_and(|value| !value.is_zero())),
            DataType::EnumValue(_) => Data::EnumValue(bytes::encode(leaves.next().unwrap_or(&zero))),
            DataType::Struct(members) => Data::Struct(struct_like(members, leaves)),
            DataType::Tuple(members) => Data::Tuple(struct_like(members, leaves)),
            DataType::Header(members) => {
                let bitstrings = members.iter().map(|member| match member {
                    DataType::Int(width) => bytes::encode_signed(leaves.next().unwrap_or(&zero), *width),
                    _ => bytes::encode(leaves.next().unwrap_or(&zero)),
                });
                Data::Header(p4::P4Header { is_valid: true, bitstrings: bitstrings.collect() })
            }
        };
        p4::P4Data { data: Some(data) }
    }

    /// Reads a message into leaves.
    ///
    /// # Errors
    /// INVALID_ARGUMENT when the message is not of this type.
    pub fn decode(&self, data: &p4::P4Data, out: &mut Vec<Value>) -> Result<()> {
        match (self, &data.data) {
            (DataType::Bits(scalar), Some(Data::Bitstring(text))) => out.push(scalar.decode(text)?),
            (DataType::Int(width), Some(Data::Bitstring(text))) => out.push(bytes::decode_signed(text, *width)?),
            (DataType::Bool, Some(Data::Bool(value))) => out.push(Value::from(u64::from(*value))),
            (DataType::EnumValue(width), Some(Data::EnumValue(text))) => out.push(bytes::decode(text, *width)?),
            (DataType::Struct(members), Some(Data::Struct(given))) | (DataType::Tuple(members), Some(Data::Tuple(given))) => {
                if members.len() != given.members.len() {
                    return Err(Status::invalid(format!(
                        "the {} has {} members; {} were given",
                        self.name(),
                        members.len(),
                        given.members.len()
                    )));
                }
                for (index, (member, given)) in members.iter().zip(&given.members).enumerate() {
                    member.decode(given, out).map_err(|status| status.at(format!("member {}", index + 1)))?;
                }
            }
            (DataType::Header(members), Some(Data::Header(given))) => {
                if !given.is_valid || members.len() != given.bitstrings.len() {
                    return Err(Status::invalid(format!("expected a valid header of {} fields", members.len())));
                }
                for (member, text) in members.iter().zip(&given.bitstrings) {
                    member.decode(&p4::P4Data { data: Some(Data::Bitstring(text.clone())) }, out)?;
                }
            }
            _ => return Err(Status::invalid(format!("expected a {}, as the type_spec in P4Info says", self.name()))),
        }
        Ok(())
    }

    fn name(&self) -> &'static str {
        match self {
            DataType::Bits(_) | DataType::Int(_) => "bitstring",
            DataType::Bool => "bool",
            DataType::Struct(_) => "struct",
            DataType::Tuple(_) => "tuple",
            DataType::Header(_) => "header",
            DataType::EnumValue(_) => "enum_value",
        }
    }
}

fn struct_like(members: &[DataType], leaves: &mut dyn Iterator<Item = &Value>) -> p4::P4StructLike {
    p4::P4StructLike { members: members.iter().map(|member| member.encode(leaves)).collect() }
}

fn resolve(spec: &config::P4DataTypeSpec, types: &config::P4TypeInfo, depth: usize) -> std::result::Result<DataType, String> {
    if depth > MAX_DEPTH {
        return Err("the type is nested too deeply".to_string());
    }
    let missing = |kind: &str, name: &str| format!("type_info has no {kind} named {name}");
    let members = |members: &[config::P4DataTypeSpec]| -> std::result::Result<Vec<DataType>, String> {
        members.iter().map(|member| resolve(member, types, depth + 1)).collect()
    };
    match &spec.type_spec {
        Some(TypeSpec::Bitstring(bits)) => bitstring(bits),
        Some(TypeSpec::Bool(_)) => Ok(DataType::Bool),
        Some(TypeSpec::Tuple(tuple)) => Ok(DataType::Tuple(members(&tuple.members)?)),
        Some(TypeSpec::Struct(named)) => {
            let found = types.structs.get(&named.name).ok_or_else(|| missing("struct", &named.name))?;
            found
                .members
                .iter()
                .map(|member| match &member.type_spec {
                    Some(spec) => resolve(spec, types, depth + 1).map_err(|text| format!("{}.{}: {text}", named.name, member.name)),
                    None => Err(format!("{}.{} has no type_spec", named.name, member.name)),
                })
                .collect::<std::result::Result<Vec<_>, _>>()
                .map(DataType::Struct)
        }
        Some(TypeSpec::Header(named)) => {
            let found = types.headers.get(&named.name).ok_or_else(|| missing("header", &named.name))?;
            found
                .members
                .iter()
                .map(|member| match &member.type_spec {
                    Some(bits) => bitstring(bits).map_err(|text| format!("{}.{}: {text}", named.name, member.name)),
                    None => Err(format!("{}.{} has no type_spec", named.name, member.name)),
                })
                .collect::<std::result::Result<Vec<_>, _>>()
                .map(DataType::Header)
        }
        Some(TypeSpec::SerializableEnum(named)) => {
            let found = types.serializable_enums.get(&named.name).ok_or_else(|| missing("serializable enum", &named.name))?;
            let width = found.underlying_type.as_ref().map_or(0, |underlying| underlying.bitwidth);
            Ok(DataType::EnumValue(u32::try_from(width).map_err(|_| format!("{}: bitwidth {width}", named.name))?))
        }
        Some(TypeSpec::NewType(named)) => {
            use config::p4_new_type_spec::Representation;
            let found = types.new_types.get(&named.name).ok_or_else(|| missing("new type", &named.name))?;
            match &found.representation {
                Some(Representation::OriginalType(original)) => resolve(original, types, depth + 1),
                Some(Representation::TranslatedType(_)) => {
                    let (_, encoding) = encoding(0, Some(named), types)?;
                    Ok(DataType::Bits(Scalar { width: 0, encoding }))
                }
                None => Err(format!("new type {} has no representation", named.name)),
            }
        }
        Some(_) => Err("only bit, int, bool, serializable enum, struct, tuple and header types are supported".to_string()),
        None => Err("there is no type_spec".to_string()),
    }
}

fn bitstring(bits: &config::P4BitstringLikeTypeSpec) -> std::result::Result<DataType, String> {
    use config::p4_bitstring_like_type_spec::TypeSpec;
    let width = |width: i32| u32::try_from(width).map_err(|_| format!("bitwidth {width} is negative"));
    match &bits.type_spec {
        Some(TypeSpec::Bit(bit)) => Ok(DataType::Bits(Scalar::bits(width(bit.bitwidth)?))),
        Some(TypeSpec::Int(int)) => Ok(DataType::Int(width(int.bitwidth)?)),
        Some(TypeSpec::Varbit(_)) => Err("varbit is not supported here".to_string()),
        None => Err("there is no type_spec".to_string()),
    }
}

#[cfg(test)]
#[path = "types_tests.rs"]
mod tests;
