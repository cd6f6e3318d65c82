//! `P4Data` survives for any type, and translated types are what their annotation says.

use super::*;
use config::p4_bitstring_like_type_spec::TypeSpec as Bitstring;
use config::p4_new_type_spec::Representation;
use config::p4_new_type_translation::{SdnString, SdnType};
use proptest::prelude::*;

fn bit(bitwidth: i32) -> config::P4BitstringLikeTypeSpec {
    config::P4BitstringLikeTypeSpec { type_spec: Some(Bitstring::Bit(config::P4BitTypeSpec { bitwidth })), ..Default::default() }
}

fn named(name: &str) -> config::P4NamedType {
    config::P4NamedType { name: name.to_string() }
}

fn spec(type_spec: TypeSpec) -> config::P4DataTypeSpec {
    config::P4DataTypeSpec { type_spec: Some(type_spec) }
}

/// `port_id_t` in 32 bits for clients, `name_t` as text, `alias_t` as itself; a struct, a header and an enum.
fn types() -> config::P4TypeInfo {
    let mut types = config::P4TypeInfo::default();
    let translated = |sdn_type| config::P4NewTypeSpec {
        representation: Some(Representation::TranslatedType(config::P4NewTypeTranslation {
            uri: "p4.org/test".to_string(),
            sdn_type: Some(sdn_type),
        })),
        ..Default::default()
    };
    types.new_types.insert("port_id_t".to_string(), translated(SdnType::SdnBitwidth(32)));
    types.new_types.insert("name_t".to_string(), translated(SdnType::SdnString(SdnString {})));
    let original = Representation::OriginalType(spec(TypeSpec::Bitstring(bit(9))));
    types.new_types.insert("alias_t".to_string(), config::P4NewTypeSpec { representation: Some(original), ..Default::default() });
    let header = config::P4HeaderTypeSpec {
        members: vec![
            config::p4_header_type_spec::Member { name: "a".to_string(), type_spec: Some(bit(48)) },
            config::p4_header_type_spec::Member {
                name: "b".to_string(),
                type_spec: Some(config::P4BitstringLikeTypeSpec {
                    type_spec: Some(Bitstring::Int(config::P4IntTypeSpec { bitwidth: 7 })),
                    ..Default::default()
                }),
            },
        ],
        ..Default::default()
    };
    types.headers.insert("header_t".to_string(), header);
    let kind = config::P4SerializableEnumTypeSpec { underlying_type: Some(config::P4BitTypeSpec { bitwidth: 8 }), ..Default::default() };
    types.serializable_enums.insert("kind_t".to_string(), kind);
    let member =
        |name: &str, type_spec: TypeSpec| config::p4_struct_type_spec::Member { name: name.to_string(), type_spec: Some(spec(type_spec)) };
    let members = vec![
        member("valid", TypeSpec::Bool(config::P4BoolType {})),
        member("port", TypeSpec::NewType(named("port_id_t"))),
        member("alias", TypeSpec::NewType(named("alias_t"))),
        member("header", TypeSpec::Header(named("header_t"))),
        member("kind", TypeSpec::SerializableEnum(named("kind_t"))),
        member("pair", TypeSpec::Tuple(config::P4TupleTypeSpec { members: vec![spec(TypeSpec::Bitstring(bit(3))); 2] })),
    ];
    types.structs.insert("outer_t".to_string(), config::P4StructTypeSpec { members, ..Default::default() });
    let knot = config::P4StructTypeSpec { members: vec![member("again", TypeSpec::Struct(named("knot_t")))], ..Default::default() };
    types.structs.insert("knot_t".to_string(), knot);
    types
}

const WIDTHS: [u32; 8] = [1, 9, 9, 48, 7, 8, 3, 3];

fn outer() -> DataType {
    let mut data = DataType::resolve(&spec(TypeSpec::Struct(named("outer_t"))), &types()).unwrap();
    data.set_translated_widths(&mut WIDTHS.into_iter());
    data
}

#[test]
fn types_are_resolved() {
    let mut widths = Vec::new();
    outer().widths(&mut widths);
    assert_eq!(widths, WIDTHS);
    let refused = |type_spec: TypeSpec| DataType::resolve(&spec(type_spec), &types()).unwrap_err();
    assert_eq!(refused(TypeSpec::Struct(named("knot_t"))).matches("again").count(), MAX_DEPTH + 1);
    assert_eq!(refused(TypeSpec::Struct(named("nobody_t"))), "type_info has no struct named nobody_t");
    assert!(refused(TypeSpec::HeaderUnion(named("u"))).contains("only bit"));
}

#[test]
fn translated_types() {
    let types = types();
    let scalar = |name: &str, width: u32| {
        let (own, encoding) = encoding(0, Some(&named(name)), &types).unwrap();
        assert_eq!(own, None);
        Scalar { width, encoding }
    };
    let port = scalar("port_id_t", 9);
    assert_eq!(port.decode(&[0, 0, 1, 0xff]).unwrap(), Value::from(511u32));
    assert!(port.decode(&[2, 0]).unwrap_err().message.contains("the data plane's width is 9 bits"));
    assert!(port.decode(&[1, 0, 0, 0, 0]).unwrap_err().message.contains("the width is 32 bits"));
    let name = scalar("name_t", 9);
    assert_eq!(name.decode(b"17").unwrap(), Value::from(17u32));
    assert_eq!(name.encode(&Value::from(17u32)), b"17");
    for bad in ["", "017", "Ethernet0", "512", "-1"] {
        assert!(name.decode(bad.as_bytes()).is_err(), "{bad}");
    }
    assert_eq!(encoding(9, Some(&named("alias_t")), &types), Ok((Some(9), Encoding::Bits)));
    assert_eq!(encoding(9, None, &types), Ok((Some(9), Encoding::Bits)));
}

#[test]
fn data_of_another_type_is_refused() {
    let mut out = Vec::new();
    let mut message = |data: Option<Data>| outer().decode(&p4::P4Data { data }, &mut out).unwrap_err().message;
    assert_eq!(message(None), "expected a struct, as the type_spec in P4Info says");
    assert_eq!(message(Some(Data::Bool(true))), "expected a struct, as the type_spec in P4Info says");
    assert_eq!(message(Some(Data::Struct(Default::default()))), "the struct has 6 members; 0 were given");
}

proptest! {
    #[test]
    fn data_survives(seed in any::<[u64; 8]>()) {
        let leaves: Vec<Value> = WIDTHS.iter().zip(seed).map(|(width, value)| Value::from(value & (u64::MAX >> (64 - width)))).collect();
        let message = outer().encode(&mut leaves.iter());
        let mut back = Vec::new();
        outer().decode(&message, &mut back).unwrap();
        prop_assert_eq!(back, leaves);
    }
}
