//! What packet tests cannot see of PSA: digests, the CPU port, queues.

use std::sync::Arc;

use fairlane_pipeline::{IngressOut, Program, Switch, SwitchConfig, Value};

/// Sends each packet by the CPU port's name, in the class that its first byte says, and a digest of that; drops those of class 9.
const SOURCE: &str = r#"
#include <core.p4>
#include <psa.p4>
header h_t { bit<8> class; }
struct headers_t { h_t h; }
struct message_t { bit<8> class; PortId_t port; }
struct metadata_t { message_t message; }
struct empty_t { }
parser IP(packet_in b, out headers_t hdr, inout metadata_t meta, in psa_ingress_parser_input_metadata_t istd, in empty_t r, in empty_t c) {
    state start { b.extract(hdr.h); transition accept; }
}
control I(inout headers_t hdr, inout metadata_t meta, in psa_ingress_input_metadata_t istd, inout psa_ingress_output_metadata_t ostd) {
    apply {
        meta.message = { hdr.h.class, istd.ingress_port };
        ostd.class_of_service = (ClassOfService_t) hdr.h.class;
        if (hdr.h.class != 9) { send_to_port(ostd, PSA_PORT_CPU); }
    }
}
control ID(packet_out b, out empty_t c, out empty_t r, out empty_t n, inout headers_t hdr, in metadata_t meta, in psa_ingress_output_metadata_t istd) {
    Digest<message_t>() messages;
    Digest<bit<8>>() again;
    apply {
        if (hdr.h.class != 0) { messages.pack(meta.message); again.pack(hdr.h.class); }
        b.emit(hdr.h);
    }
}
parser EP(packet_in b, out headers_t hdr, inout metadata_t meta, in psa_egress_parser_input_metadata_t istd, in empty_t n, in empty_t i, in empty_t e) {
    state start { b.extract(hdr.h); transition accept; }
}
control E(inout headers_t hdr, inout metadata_t meta, in psa_egress_input_metadata_t istd, inout psa_egress_output_metadata_t ostd) {
    apply {
        if (istd.egress_port == PSA_PORT_CPU) { hdr.h.class = (bit<8>) (ClassOfServiceUint_t) istd.class_of_service + 0x10; }
    }
}
control ED(packet_out b, out empty_t e, out empty_t r, inout headers_t hdr, in metadata_t meta, in psa_egress_output_metadata_t istd,
           in psa_egress_deparser_input_metadata_t edstd) {
    apply { b.emit(hdr.h); }
}
PSA_Switch(IngressPipeline(IP(), I(), ID()), PacketReplicationEngine(), EgressPipeline(EP(), E(), ED()), BufferingQueueingEngine()) main;
"#;

fn switch() -> Switch {
    let outcome = fairlane_compiler::compile_source("cpu.p4", SOURCE, &fairlane_compiler::Options::default());
    assert_eq!(outcome.control_plane.map(|plane| plane.arch).as_deref(), Some("psa"), "{}", outcome.rendered);
    let p4info = outcome.p4info.unwrap_or_default();
    assert!(p4info.contains("arch: \"psa\"") && p4info.contains("name: \"ID.messages\""), "{p4info}");
    let program = Program::from_json(&outcome.json.expect("compiled").to_string()).unwrap_or_else(|e| panic!("{e}"));
    Switch::new(Arc::new(program), SwitchConfig { cpu_port: Some(510), priorities: 4, ..SwitchConfig::default() }).expect("memory")
}

#[test]
fn the_cpu_port_has_its_name_of_psa_within_the_program_alone() {
    let mut switch = switch();
    let mut out = IngressOut::default();
    for (port, class, seen) in [(510, 2, 0xffff_fffd_u32), (3, 7, 3)] {
        switch.ingress(0, port, &[class, 0xaa], &mut out);
        let queued: Vec<_> = out.queued.drain(..).collect();
        assert_eq!(queued.len(), 1);
        // Queues 0 to 3: higher classes share the last.
        assert_eq!((queued[0].egress_port(), queued[0].priority()), (510, u32::from(class).min(3)));
        let digests = switch.take_digests();
        assert_eq!(digests.len(), 2, "both of one packet");
        assert_eq!(digests[0].members, [Value::from(u32::from(class)), Value::from(seen)]);
        assert_eq!(digests[1].members, [Value::from(u32::from(class))]);
        let mut left = fairlane_pipeline::EgressOut::default();
        for item in queued {
            switch.egress(0, item, fairlane_pipeline::QueueInfo::default(), &mut left);
        }
        let emitted = left.emitted.expect("sent");
        assert_eq!((emitted.port, emitted.bytes), (510, vec![class + 0x10, 0xaa]));
    }
}

#[test]
fn a_packet_that_is_dropped_sends_its_digest_and_others_need_not() {
    let mut switch = switch();
    let mut out = IngressOut::default();
    switch.ingress(0, 1, &[9], &mut out);
    assert!(out.queued.is_empty() && out.dropped.is_some());
    assert_eq!(switch.take_digests().len(), 2);
    switch.ingress(0, 1, &[0], &mut out);
    assert_eq!((out.queued.len(), switch.take_digests().len()), (1, 0));
}
