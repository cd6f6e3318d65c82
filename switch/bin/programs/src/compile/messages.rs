//! P4Info and entries in the forms of protobuf: the text that the compiler writes, and JSON and binary made from it.

use std::path::Path;

use fairlane_p4rt::proto::DESCRIPTORS;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};

/// How a message is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Binary,
    Json,
    Text,
}

impl Format {
    /// By the suffix of a file's name, as p4c has it.
    pub fn of(path: &Path) -> Result<Format, String> {
        match path.extension().and_then(|suffix| suffix.to_str()) {
            Some("bin") => Ok(Format::Binary),
            Some("json") => Ok(Format::Json),
            Some("txt" | "txtpb" | "pbtxt" | "prototxt") => Ok(Format::Text),
            _ => Err(format!("{}: the suffix tells the format: name the file .txtpb, .txt, .json or .bin", path.display())),
        }
    }
}

/// Which message a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    P4Info,
    WriteRequest,
}

/// A message in protobuf's text format, in another.
pub fn convert(kind: Kind, text: &str, format: Format) -> Result<Vec<u8>, String> {
    if format == Format::Text {
        return Ok(text.as_bytes().to_vec());
    }
    let name = match kind {
        Kind::P4Info => "p4.config.v1.P4Info",
        Kind::WriteRequest => "p4.v1.WriteRequest",
    };
    let pool = DescriptorPool::decode(DESCRIPTORS).map_err(|e| e.to_string())?;
    let descriptor = pool.get_message_by_name(name).ok_or_else(|| format!("there is no message {name}"))?;
    let message = DynamicMessage::parse_text_format(descriptor, text).map_err(|e| format!("{name}: {e}"))?;
    if format == Format::Binary {
        return Ok(message.encode_to_vec());
    }
    let mut out = Vec::new();
    let mut writer = serde_json::Serializer::pretty(&mut out);
    message.serialize_with_options(&mut writer, &SerializeOptions::new()).map_err(|e| format!("{name}: {e}"))?;
    out.push(b'\n');
    Ok(out)
}
