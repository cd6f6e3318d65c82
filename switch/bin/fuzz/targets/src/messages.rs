//! Protobuf messages of any content by their descriptors; ids mostly name something of the program.

use std::sync::OnceLock;

use arbitrary::{Result, Unstructured};
use fairlane_p4rt::proto::p4::config::v1 as config;
use fairlane_p4rt::proto::DESCRIPTORS;
use prost::Message;
use prost_reflect::{Cardinality, DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};

/// The descriptors of P4Runtime.
pub fn pool() -> &'static DescriptorPool {
    static POOL: OnceLock<DescriptorPool> = OnceLock::new();
    POOL.get_or_init(|| DescriptorPool::decode(DESCRIPTORS).expect("descriptors"))
}

/// Makes messages for one program.
pub struct Messages {
    /// Ids of the program's objects, by the name of the field that holds one.
    ids: Vec<(&'static str, Vec<u32>)>,
}

impl Messages {
    /// For the program that this P4Info describes.
    pub fn of(info: &config::P4Info) -> Messages {
        macro_rules! ids {
            ($list:ident) => {
                info.$list.iter().filter_map(|object| Some(object.preamble.as_ref()?.id)).collect()
            };
        }
        Messages {
            ids: vec![
                ("table_id", ids!(tables)),
                ("action_id", ids!(actions)),
                ("action_profile_id", ids!(action_profiles)),
                ("counter_id", ids!(counters)),
                ("meter_id", ids!(meters)),
                ("register_id", ids!(registers)),
                ("digest_id", ids!(digests)),
                ("value_set_id", ids!(value_sets)),
            ],
        }
    }

    /// A serialised message of that type.
    pub fn any(&self, name: &str, bytes: &mut Unstructured) -> Result<Vec<u8>> {
        let descriptor = pool().get_message_by_name(name).expect("a message of P4Runtime");
        Ok(self.message(&descriptor, 0, bytes)?.encode_to_vec())
    }

    fn message(&self, descriptor: &MessageDescriptor, depth: u32, bytes: &mut Unstructured) -> Result<DynamicMessage> {
        let mut message = DynamicMessage::new(descriptor.clone());
        // One member of each oneof, chosen evenly; later ones would undo earlier ones.
        for oneof in descriptor.oneofs() {
            if bytes.ratio(7, 8)? {
                let i = bytes.choose_index(oneof.fields().len())?;
                if let Some(field) = oneof.fields().nth(i) {
                    message.set_field(&field, self.field(&field, depth, bytes)?);
                }
            }
        }
        for field in descriptor.fields().filter(|field| field.containing_oneof().is_none()) {
            if !bytes.is_empty() && depth < 8 && bytes.ratio(3, 4)? {
                message.set_field(&field, self.field(&field, depth, bytes)?);
            }
        }
        Ok(message)
    }

    fn field(&self, field: &FieldDescriptor, depth: u32, bytes: &mut Unstructured) -> Result<Value> {
        if field.cardinality() != Cardinality::Repeated {
            return self.value(field, depth, bytes);
        }
        let mut items = Vec::new();
        for _ in 0..bytes.int_in_range(0..=2u8)? {
            items.push(self.value(field, depth, bytes)?);
        }
        Ok(Value::List(items))
    }

    fn value(&self, field: &FieldDescriptor, depth: u32, bytes: &mut Unstructured) -> Result<Value> {
        Ok(match field.kind() {
            Kind::Message(descriptor) => Value::Message(self.message(&descriptor, depth + 1, bytes)?),
            Kind::Bytes => {
                let length = bytes.int_in_range(0..=17usize)?.min(bytes.len());
                Value::Bytes(bytes.bytes(length)?.to_vec().into())
            }
            Kind::String => Value::String(bytes.choose(&["", "role", "p4"])?.to_string()),
            Kind::Bool => Value::Bool(bytes.arbitrary()?),
            Kind::Enum(_) => Value::EnumNumber(bytes.int_in_range(0..=4)?),
            Kind::Uint32 | Kind::Fixed32 => Value::U32(self.number(field.name(), bytes)?),
            Kind::Uint64 | Kind::Fixed64 => Value::U64(if bytes.ratio(7, 8)? { 1 } else { bytes.arbitrary()? }),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
                Value::I32(if bytes.ratio(3, 4)? { bytes.int_in_range(-1..=9)? } else { bytes.arbitrary()? })
            }
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
                Value::I64(if bytes.ratio(3, 4)? { bytes.int_in_range(-1..=99)? } else { bytes.arbitrary()? })
            }
            Kind::Double => Value::F64(bytes.arbitrary()?),
            Kind::Float => Value::F32(bytes.arbitrary()?),
        })
    }

    fn number(&self, name: &str, bytes: &mut Unstructured) -> Result<u32> {
        match self.ids.iter().find(|(field, ids)| *field == name && !ids.is_empty()) {
            Some((_, ids)) if bytes.ratio(15, 16)? => Ok(*bytes.choose(ids)?),
            // Numbers of fields, parameters, members, groups, ports begin at 0 or 1.
            _ if bytes.ratio(7, 8)? => bytes.int_in_range(0..=5),
            _ => bytes.arbitrary(),
        }
    }
}
