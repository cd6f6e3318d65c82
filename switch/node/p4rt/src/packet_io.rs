//! Packet-in and packet-out: the controller header, bit by bit [P4Runtime sec 16.1].
//!
//! A frame for the CPU port begins with the header that the program declares `@controller_header("packet_in")`, and one from there
//! with `"packet_out"`: the metadata fields in order, without padding between them. Fields annotated `@hidden` are not in P4Info;
//! at the end of a header they are the zero bits up to the next byte.

use fairlane_pipeline::Value;

use crate::model::PacketField;
use crate::proto::p4::v1 as p4;
use crate::status::{Result, Status};

/// Splits a frame from the CPU port. `None` when it is shorter than the header.
pub fn packet_in(fields: &[PacketField], frame: &[u8]) -> Option<p4::PacketIn> {
    let bits: usize = fields.iter().map(|field| field.scalar.width as usize).sum();
    let payload = frame.get(bits.div_ceil(8)..)?;
    let mut at = 0;
    let metadata = fields.iter().map(|field| {
        let width = field.scalar.width as usize;
        let value = read_bits(frame, at, width);
        at += width;
        p4::PacketMetadata { metadata_id: field.id, value: field.scalar.encode(&value) }
    });
    Some(p4::PacketIn { metadata: metadata.collect(), payload: payload.to_vec() })
}

/// Makes the frame of a packet-out.
///
/// # Errors
/// INVALID_ARGUMENT when the metadata is not exactly what P4Info says.
pub fn packet_out(fields: &[PacketField], packet: &p4::PacketOut) -> Result<Vec<u8>> {
    if let Some(unknown) = packet.metadata.iter().find(|given| !fields.iter().any(|field| field.id == given.metadata_id)) {
        return Err(Status::invalid(format!(
            "metadata id {} is not in the packet_out header, which has {} fields",
            unknown.metadata_id,
            fields.len()
        )));
    }
    let bits: usize = fields.iter().map(|field| field.scalar.width as usize).sum();
    let mut frame = vec![0; bits.div_ceil(8)];
    frame.reserve(packet.payload.len());
    let mut at = 0;
    for field in fields {
        let place = |status: Status| status.at(format!("metadata \"{}\" (id {})", field.name, field.id));
        let mut given = packet.metadata.iter().filter(|given| given.metadata_id == field.id);
        let Some(metadata) = given.next() else { return Err(place(Status::invalid("it is missing"))) };
        if given.next().is_some() {
            return Err(place(Status::invalid("it is given twice")));
        }
        let value = field.scalar.decode(&metadata.value).map_err(place)?;
        let width = field.scalar.width as usize;
        write_bits(&mut frame, at, width, &value);
        at += width;
    }
    frame.extend_from_slice(&packet.payload);
    Ok(frame)
}

fn read_bits(bytes: &[u8], from: usize, width: usize) -> Value {
    let mut out = vec![0u8; width.div_ceil(8)];
    let spare = out.len() * 8 - width;
    for bit in 0..width {
        let source = from + bit;
        if bytes.get(source / 8).is_some_and(|byte| byte >> (7 - source % 8) & 1 != 0) {
            let place = spare + bit;
            out[place / 8] |= 0x80 >> (place % 8);
        }
    }
    Value::from_be_bytes(&out)
}

fn write_bits(bytes: &mut [u8], from: usize, width: usize, value: &Value) {
    let source = value.to_be_bytes(width as u32);
    let spare = source.len() * 8 - width;
    for bit in 0..width {
        let place = spare + bit;
        if source[place / 8] >> (7 - place % 8) & 1 != 0 {
            let target = from + bit;
            if let Some(byte) = bytes.get_mut(target / 8) {
                *byte |= 0x80 >> (target % 8);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Scalar;
    use proptest::prelude::*;

    fn fields(widths: &[u32]) -> Vec<PacketField> {
        widths
            .iter()
            .enumerate()
            .map(|(index, width)| PacketField { id: index as u32 + 1, name: format!("f{index}"), scalar: Scalar::bits(*width) })
            .collect()
    }

    fn meta(id: u32, value: &[u8]) -> p4::PacketMetadata {
        p4::PacketMetadata { metadata_id: id, value: value.to_vec() }
    }

    #[test]
    fn a_port_and_its_padding() {
        // bit<9> port = 0x155; bit<7> pad = 0x2a: 1 0101 0101 010 1010
        let header = fields(&[9, 7]);
        let packet = p4::PacketOut { payload: vec![0xee], metadata: vec![meta(2, &[0x2a]), meta(1, &[0x01, 0x55])] };
        assert_eq!(packet_out(&header, &packet), Ok(vec![0xaa, 0xaa, 0xee]));
        let back = packet_in(&header, &[0xaa, 0xaa, 0xee]).unwrap();
        assert_eq!(back.metadata, [meta(1, &[0x01, 0x55]), meta(2, &[0x2a])]);
        assert_eq!(back.payload, [0xee]);
        assert_eq!(packet_in(&header, &[0xaa]), None);
    }

    #[test]
    fn metadata_must_be_exactly_the_headers() {
        let header = fields(&[9, 7]);
        let message =
            |metadata: Vec<p4::PacketMetadata>| packet_out(&header, &p4::PacketOut { payload: Vec::new(), metadata }).unwrap_err().message;
        assert_eq!(message(vec![meta(1, &[1])]), "metadata \"f1\" (id 2): it is missing");
        assert_eq!(message(vec![meta(1, &[1]), meta(1, &[1]), meta(2, &[0])]), "metadata \"f0\" (id 1): it is given twice");
        assert_eq!(
            message(vec![meta(1, &[1]), meta(2, &[0]), meta(7, &[0])]),
            "metadata id 7 is not in the packet_out header, which has 2 fields"
        );
        assert_eq!(
            message(vec![meta(1, &[2, 0]), meta(2, &[0])]),
            "metadata \"f0\" (id 1): the value 0x200 needs 10 bits; the width is 9 bits"
        );
    }

    proptest! {
        #[test]
        fn headers_survive(widths in prop::collection::vec(1u32..70, 0..6), seed in any::<[u8; 64]>(), payload in prop::collection::vec(any::<u8>(), 0..20)) {
            let mut widths = widths;
            let bits: u32 = widths.iter().sum();
            if !bits.is_multiple_of(8) { widths.push(8 - bits % 8); }
            let header = fields(&widths);
            let bytes = widths.iter().sum::<u32>() as usize / 8;
            let mut frame = seed[..bytes.min(64)].to_vec();
            frame.extend(&payload);
            match packet_in(&header, &frame) {
                Some(packet) => {
                    prop_assert_eq!(&packet.payload, &frame[bytes..]);
                    let again = p4::PacketOut { payload: packet.payload, metadata: packet.metadata };
                    prop_assert_eq!(packet_out(&header, &again), Ok(frame));
                }
                None => prop_assert!(frame.len() < bytes),
            }
        }
    }
}
