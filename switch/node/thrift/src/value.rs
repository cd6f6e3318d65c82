//! Any Thrift value, and its way from and to a protocol.

use thrift::protocol::{TFieldIdentifier, TInputProtocol, TListIdentifier, TMapIdentifier, TOutputProtocol, TStructIdentifier, TType};

/// A value of any type that BMv2's services use.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Bool(bool),
    Byte(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    Double(f64),
    /// `string` and `binary`, which are alike on the wire.
    Bytes(Vec<u8>),
    /// With the elements' type, since an empty list has it, too.
    List(Kind, Vec<Value>),
    /// From string to string.
    Map(Vec<(Value, Value)>),
    Struct(Fields),
}

/// The type of a list's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Byte,
    I16,
    I32,
    I64,
    Double,
    Bytes,
    List,
    Map,
    Struct,
}

impl Kind {
    fn wire(self) -> TType {
        match self {
            Kind::Bool => TType::Bool,
            Kind::Byte => TType::I08,
            Kind::I16 => TType::I16,
            Kind::I32 => TType::I32,
            Kind::I64 => TType::I64,
            Kind::Double => TType::Double,
            Kind::Bytes => TType::String,
            Kind::List => TType::List,
            Kind::Map => TType::Map,
            Kind::Struct => TType::Struct,
        }
    }

    fn of(wire: TType) -> thrift::Result<Kind> {
        Ok(match wire {
            TType::Bool => Kind::Bool,
            TType::I08 => Kind::Byte,
            TType::I16 => Kind::I16,
            TType::I32 => Kind::I32,
            TType::I64 => Kind::I64,
            TType::Double => Kind::Double,
            TType::String | TType::Utf7 => Kind::Bytes,
            TType::List | TType::Set => Kind::List,
            TType::Map => Kind::Map,
            TType::Struct => Kind::Struct,
            TType::Stop | TType::Void | TType::Uuid => {
                let message = format!("a value of type {wire} has no place in these services");
                return Err(thrift::new_protocol_error(thrift::ProtocolErrorKind::InvalidData, message));
            }
        })
    }
}

/// Fields by number.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fields(Vec<(i16, Value)>);

/// An argument that is missing or of another type, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadField(pub i16);

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident $variant:ident $type:ty;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// [`BadField`] when there is none of this type.
        pub fn $name(&self, number: i16) -> Result<$type, BadField> {
            match self.find(number) {
                Some(Value::$variant(value)) => Ok(*value),
                _ => Err(BadField(number)),
            }
        }
    )*};
}

impl Fields {
    /// Fields in the order in which they are written.
    pub fn new(fields: impl IntoIterator<Item = (i16, Value)>) -> Fields {
        Fields(fields.into_iter().collect())
    }

    /// Adds a field.
    pub fn push(&mut self, number: i16, value: Value) {
        self.0.push((number, value));
    }

    /// The field with this number, where it is set.
    pub fn find(&self, number: i16) -> Option<&Value> {
        self.0.iter().find(|(n, _)| *n == number).map(|(_, value)| value)
    }

    getters! {
        /// A `bool`.
        bool Bool bool;
        /// An `i16`.
        i16 I16 i16;
        /// An `i32`, or an enumeration.
        i32 I32 i32;
        /// An `i64`.
        i64 I64 i64;
        /// A `double`.
        double Double f64;
    }

    /// A `binary`.
    ///
    /// # Errors
    /// [`BadField`] when there is none.
    pub fn bytes(&self, number: i16) -> Result<&[u8], BadField> {
        match self.find(number) {
            Some(Value::Bytes(bytes)) => Ok(bytes),
            _ => Err(BadField(number)),
        }
    }

    /// A `string`.
    ///
    /// # Errors
    /// [`BadField`] when there is none, or not of UTF-8.
    pub fn string(&self, number: i16) -> Result<&str, BadField> {
        std::str::from_utf8(self.bytes(number)?).map_err(|_| BadField(number))
    }

    /// A `list`.
    ///
    /// # Errors
    /// [`BadField`] when there is none.
    pub fn list(&self, number: i16) -> Result<&[Value], BadField> {
        match self.find(number) {
            Some(Value::List(_, items)) => Ok(items),
            _ => Err(BadField(number)),
        }
    }

    /// A struct.
    ///
    /// # Errors
    /// [`BadField`] when there is none.
    pub fn fields(&self, number: i16) -> Result<&Fields, BadField> {
        match self.find(number) {
            Some(Value::Struct(fields)) => Ok(fields),
            _ => Err(BadField(number)),
        }
    }

    /// A list of structs.
    ///
    /// # Errors
    /// [`BadField`] when there is none.
    pub fn structs(&self, number: i16) -> Result<Vec<&Fields>, BadField> {
        let one = |item: &'_ Value| matches!(item, Value::Struct(_));
        let items = self.list(number)?;
        if !items.iter().all(one) {
            return Err(BadField(number));
        }
        Ok(items.iter().filter_map(|item| if let Value::Struct(fields) = item { Some(fields) } else { None }).collect())
    }
}

impl Value {
    /// A `string`.
    pub fn text(text: impl Into<String>) -> Value {
        Value::Bytes(text.into().into_bytes())
    }

    /// A struct.
    pub fn record(fields: impl IntoIterator<Item = (i16, Value)>) -> Value {
        Value::Struct(Fields::new(fields))
    }

    fn kind(&self) -> Kind {
        match self {
            Value::Bool(_) => Kind::Bool,
            Value::Byte(_) => Kind::Byte,
            Value::I16(_) => Kind::I16,
            Value::I32(_) => Kind::I32,
            Value::I64(_) => Kind::I64,
            Value::Double(_) => Kind::Double,
            Value::Bytes(_) => Kind::Bytes,
            Value::List(..) => Kind::List,
            Value::Map(_) => Kind::Map,
            Value::Struct(_) => Kind::Struct,
        }
    }
}

/// Reads a struct.
///
/// # Errors
/// Those of the protocol: what comes is no struct, too deep or too long.
pub fn read_fields(input: &mut dyn TInputProtocol) -> thrift::Result<Fields> {
    let mut fields = Fields::default();
    input.read_struct_begin()?;
    loop {
        let field = input.read_field_begin()?;
        if field.field_type == TType::Stop {
            break;
        }
        let value = read(input, field.field_type)?;
        fields.push(field.id.unwrap_or(0), value);
        input.read_field_end()?;
    }
    input.read_struct_end()?;
    Ok(fields)
}

/// Containers within containers. Structs have the protocol's own limit.
const DEEPEST: usize = 8;

fn read(input: &mut dyn TInputProtocol, wire: TType) -> thrift::Result<Value> {
    read_within(input, wire, DEEPEST)
}

fn read_within(input: &mut dyn TInputProtocol, wire: TType, deeper: usize) -> thrift::Result<Value> {
    let below = || {
        let error = || thrift::new_protocol_error(thrift::ProtocolErrorKind::DepthLimit, "containers within containers, too deep");
        deeper.checked_sub(1).ok_or_else(error)
    };
    Ok(match Kind::of(wire)? {
        Kind::Bool => Value::Bool(input.read_bool()?),
        Kind::Byte => Value::Byte(input.read_i8()?),
        Kind::I16 => Value::I16(input.read_i16()?),
        Kind::I32 => Value::I32(input.read_i32()?),
        Kind::I64 => Value::I64(input.read_i64()?),
        Kind::Double => Value::Double(input.read_double()?),
        Kind::Bytes => Value::Bytes(input.read_bytes()?),
        Kind::List => {
            let below = below()?;
            let list = input.read_list_begin()?;
            let kind = if list.size == 0 { Kind::of(list.element_type).unwrap_or(Kind::Byte) } else { Kind::of(list.element_type)? };
            // Not reserved: the size is the client's word.
            let items = (0..list.size).map(|_| read_within(input, list.element_type, below)).collect::<thrift::Result<_>>()?;
            input.read_list_end()?;
            Value::List(kind, items)
        }
        Kind::Map => {
            let below = below()?;
            let map = input.read_map_begin()?;
            let mut items = Vec::new();
            for _ in 0..map.size {
                let (Some(key), Some(value)) = (map.key_type, map.value_type) else { break };
                items.push((read_within(input, key, below)?, read_within(input, value, below)?));
            }
            input.read_map_end()?;
            Value::Map(items)
        }
        Kind::Struct => Value::Struct(read_fields(input)?),
    })
}

/// Writes a struct.
///
/// # Errors
/// Those of the protocol's transport.
pub fn write_fields(output: &mut dyn TOutputProtocol, fields: &Fields) -> thrift::Result<()> {
    output.write_struct_begin(&TStructIdentifier::new(""))?;
    for (number, value) in &fields.0 {
        output.write_field_begin(&TFieldIdentifier::new("", value.kind().wire(), *number))?;
        write(output, value)?;
        output.write_field_end()?;
    }
    output.write_field_stop()?;
    output.write_struct_end()
}

fn size(length: usize) -> thrift::Result<i32> {
    i32::try_from(length).map_err(|_| thrift::new_protocol_error(thrift::ProtocolErrorKind::SizeLimit, "too many elements"))
}

fn write(output: &mut dyn TOutputProtocol, value: &Value) -> thrift::Result<()> {
    match value {
        Value::Bool(value) => output.write_bool(*value),
        Value::Byte(value) => output.write_i8(*value),
        Value::I16(value) => output.write_i16(*value),
        Value::I32(value) => output.write_i32(*value),
        Value::I64(value) => output.write_i64(*value),
        Value::Double(value) => output.write_double(*value),
        Value::Bytes(bytes) => output.write_bytes(bytes),
        Value::List(kind, items) => {
            output.write_list_begin(&TListIdentifier::new(kind.wire(), size(items.len())?))?;
            items.iter().try_for_each(|item| write(output, item))?;
            output.write_list_end()
        }
        Value::Map(items) => {
            output.write_map_begin(&TMapIdentifier::new(TType::String, TType::String, size(items.len())?))?;
            items.iter().try_for_each(|(key, value)| write(output, key).and_then(|()| write(output, value)))?;
            output.write_map_end()
        }
        Value::Struct(fields) => write_fields(output, fields),
    }
}
