use fairlane_syntax::ast::{Annotation, DeclarationKind};
use fairlane_syntax::{parse_text, DiskFiles, Options};
use num_bigint::BigInt;

use super::*;
use crate::control_plane::*;

/// The annotations written before a declaration.
fn annotations(text: &str) -> Vec<Annotation> {
    let parsed = parse_text(std::path::Path::new("a.p4"), format!("{text} struct s {{}}"), &Options::default(), &DiskFiles);
    assert!(!parsed.diagnostics.has_errors(), "{}", parsed.diagnostics.render(&parsed.sources));
    let last = parsed.program.declarations.into_iter().next_back().expect("a struct");
    assert!(matches!(last.kind, DeclarationKind::Struct(_)));
    last.annotations
}

fn param(name: &str, bits: u32, ty: DataType) -> Param {
    Param { name: name.into(), annotations: Vec::new(), bits, ty }
}

fn key(name: &str, match_kind: &str, bits: u32, ty: DataType) -> KeyField {
    KeyField { name: name.into(), annotations: Vec::new(), match_kind: match_kind.into(), bits, ty }
}

fn table(name: &str, keys: Vec<KeyField>, actions: &[&str]) -> Table {
    Table {
        name: name.into(),
        annotations: Vec::new(),
        keys,
        actions: actions
            .iter()
            .map(|action| TableAction { action: action.to_string(), annotations: Vec::new(), table_only: false, default_only: false })
            .collect(),
        default_action: None,
        size: None,
        implementation: None,
        direct_counter: None,
        direct_meter: None,
        support_timeout: false,
        entries: Vec::new(),
        const_entries: false,
    }
}

fn action(name: &str, params: Vec<Param>) -> Action {
    Action { name: name.into(), annotations: Vec::new(), params }
}

fn emitted(plane: &ControlPlane) -> String {
    let mut diagnostics = Diagnostics::default();
    let text = emit(plane, &mut diagnostics);
    assert!(!diagnostics.has_errors(), "{diagnostics:?}");
    text
}

/// One message of the text: from its first line at the margin to its closing brace.
fn message(text: &str, start: &str) -> String {
    let from = text.find(&format!("\n{start}")).unwrap_or_else(|| panic!("no {start} in {text}")) + 1;
    let end = text[from..].find("\n}\n").map_or(text.len(), |i| from + i + 3);
    text[from..end].to_string()
}

/// The ids in this text are those that p4c 1.2 gives for the same table, actions and parameters.
#[test]
fn a_table_with_its_actions_and_default_action() {
    let mut lpm = table(
        "MyIngress.ipv4_lpm",
        vec![key("hdr.ipv4.dstAddr", "lpm", 32, DataType::Bits(32))],
        &["MyIngress.ipv4_forward", "MyIngress.drop", "NoAction"],
    );
    lpm.size = Some(2048);
    lpm.support_timeout = true;
    lpm.actions[2].default_only = true;
    lpm.default_action =
        Some(DefaultAction { action: "MyIngress.ipv4_forward".into(), arguments: vec![BigInt::from(10), BigInt::from(1)], is_const: true });
    let mut no_action = action("NoAction", Vec::new());
    no_action.annotations = annotations("@noWarn(\"unused\")");
    let forward = vec![param("dstAddr", 48, DataType::Bits(48)), param("port", 9, DataType::Bits(9))];
    let plane = ControlPlane {
        arch: "v1model".into(),
        tables: vec![lpm],
        actions: vec![no_action, action("MyIngress.drop", Vec::new()), action("MyIngress.ipv4_forward", forward)],
        ..ControlPlane::default()
    };
    insta::assert_snapshot!(emitted(&plane));
}

#[test]
fn named_types_are_defined_with_what_they_are_made_of() {
    let fields = |list: &[(&str, DataType)]| list.iter().map(|(n, t)| (n.to_string(), t.clone(), Vec::new())).collect();
    let definition = |name: &str, kind| TypeDefinition { name: name.into(), annotations: Vec::new(), kind };
    let mut port = definition("port_t", TypeDefinitionKind::Newtype(DataType::Bits(9)));
    port.annotations = annotations("@p4runtime_translation(\"p4.org/port\", bit<32>)");
    let mut name = definition("name_t", TypeDefinitionKind::Newtype(DataType::Bits(16)));
    name.annotations = annotations("@p4runtime_translation(\"p4.org/name\", string)");
    let plane = ControlPlane {
        arch: "v1model".into(),
        tables: vec![table(
            "c.t",
            vec![
                key("port", "exact", 9, DataType::Newtype("port_t".into())),
                key("name", "optional", 16, DataType::Newtype("name_t".into())),
                key("kind", "custom", 8, DataType::SerializableEnum("kind_t".into())),
            ],
            &[],
        )],
        digests: vec![Digest { name: "report_t".into(), annotations: Vec::new(), ty: DataType::Struct("report_t".into()) }],
        types: vec![
            definition("unused_t", TypeDefinitionKind::Struct(fields(&[]))),
            definition("pair_t", TypeDefinitionKind::Struct(fields(&[("a", DataType::SignedBits(4)), ("b", DataType::Bool)]))),
            definition(
                "h_t",
                TypeDefinitionKind::Header(fields(&[
                    ("p", DataType::Struct("pair_t".into())),
                    ("v", DataType::Varbit(32)),
                    ("k", DataType::SerializableEnum("kind_t".into())),
                ])),
            ),
            definition(
                "report_t",
                TypeDefinitionKind::Struct(fields(&[
                    ("plain", DataType::Newtype("plain_t".into())),
                    ("stack", DataType::Stack(Box::new(DataType::Header("h_t".into())), 3)),
                    ("why", DataType::Error),
                    ("what", DataType::Enum("what_t".into())),
                ])),
            ),
            definition("kind_t", TypeDefinitionKind::SerializableEnum(8, vec![("A".into(), 1.into()), ("B".into(), 200.into())])),
            definition("what_t", TypeDefinitionKind::Enum(vec!["X".into()])),
            definition("error", TypeDefinitionKind::Error(vec!["NoError".into()])),
            port,
            name,
            definition("plain_t", TypeDefinitionKind::Newtype(DataType::Newtype("inner_t".into()))),
            definition("inner_t", TypeDefinitionKind::Newtype(DataType::Bits(7))),
        ],
        ..ControlPlane::default()
    };
    let text = emitted(&plane);
    assert!(!text.contains("unused_t"));
    insta::assert_snapshot!(message(&text, "tables {"));
    insta::assert_snapshot!(message(&text, "type_info {"));
}

#[test]
fn given_ids_keep_their_place_and_others_go_around_them() {
    let with_id = |bits: u32, id: &str| Param { annotations: annotations(id), ..param("p", bits, DataType::Bits(bits)) };
    let mut given = action("c.a", vec![param("p", 1, DataType::Bits(1)), with_id(2, "@id(1)"), param("p", 3, DataType::Bits(3))]);
    given.annotations = annotations("@id(0x1234) @brief(\"what\" ) @custom(a , \"b\")");
    let plane = ControlPlane { actions: vec![given], ..ControlPlane::default() };
    insta::assert_snapshot!(message(&emitted(&plane), "actions {"));
}

#[test]
fn faulty_ids_and_names_are_reported() {
    let named = |name: &str, id: &str| Action { annotations: annotations(id), ..action(name, Vec::new()) };
    let codes = |actions: Vec<Action>| {
        let mut diagnostics = Diagnostics::default();
        emit(&ControlPlane { actions, ..ControlPlane::default() }, &mut diagnostics);
        diagnostics.iter().map(|diagnostic| diagnostic.code.name()).collect::<Vec<_>>()
    };
    assert_eq!(codes(vec![named("a", "@id(5)"), named("b", "@id(5)")]), ["duplicate-id"]);
    assert_eq!(codes(vec![named("a", "@id(0x02000005)")]), ["wrong-id-prefix"]);
    assert_eq!(codes(vec![named("a", "@id(\"x\")")]), ["annotation"]);
    assert_eq!(codes(vec![named("a", ""), named("a", "")]), ["duplicate-name"]);
}
