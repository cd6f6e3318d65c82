// One object of each kind that P4Info knows, most of them annotated.
#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("example.org/port", bit<32>)
type bit<9> port_id_t;
@p4runtime_translation("example.org/vrf", string)
type bit<10> vrf_id_t;
type bit<48> address_t;
enum bit<8> protocol_t { tcp = 6, udp = 17 }

@controller_header("packet_in")
header packet_in_h { @id(3) port_id_t ingress_port; bit<7> padding; }
@controller_header("packet_out")
header packet_out_h { bit<9> egress_port; @hidden bit<7> padding; }

header frame_h { address_t dst; address_t src; bit<16> type_; }
header inner_h { protocol_t protocol; bit<8> flags; }

struct report_t { address_t who; bit<16> what; }
struct headers_t { packet_in_h packet_in; packet_out_h packet_out; frame_h frame; inner_h inner; }
struct meta_t { vrf_id_t vrf; bit<2> colour; }
struct pattern_t { @match(ternary) bit<16> type_; bit<8> code; }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    @id(0x77) value_set<bit<16>>(4) types;
    state start {
        packet.extract(hdr.frame);
        transition select(hdr.frame.type_) {
            types: inner;
            default: accept;
        }
    }
    state inner {
        packet.extract(hdr.inner);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    counter(16, CounterType.packets_and_bytes) by_port;
    @brief("per class") meter(8, MeterType.bytes) by_class;
    register<bit<40>>(32) last_seen;
    direct_counter(CounterType.bytes) hits;
    direct_meter<bit<2>>(MeterType.packets) speed;
    @max_group_size(4) @keep("this", 1 + 2) action_selector(HashAlgorithm.crc16, 64, 16) group;
    action_profile(32) shared;

    @id(0x0100beef)
    action send(@id(2) @brief("where to") port_id_t port, vrf_id_t vrf, bit<1> tag) {
        sm.egress_spec = (bit<9>) port;
        meta.vrf = vrf;
        by_port.count((bit<32>) tag);
    }
    action drop() { mark_to_drop(sm); }
    action pace() { speed.read(meta.colour); }
    action measure(bit<32> class) { by_class.execute_meter(class, meta.colour); }
    @hidden action quiet() { }

    @brief("by address") @description("what goes where") @custom @pairs[level = 3, label = "x", on = true]
    table forward {
        key = {
            hdr.frame.dst : exact @name("destination") @list[1, "two"];
            hdr.inner.protocol : ternary @id(7);
            (bit<9>) sm.ingress_port : optional @name("ingress_port");
            meta.vrf : exact;
        }
        actions = { send; @tableonly drop; @defaultonly @why("it is safe") NoAction; }
        default_action = NoAction();
        counters = hits;
        size = 100;
        support_timeout = true;
    }
    table balance {
        key = { hdr.frame.src : lpm; hdr.frame.dst : selector; }
        actions = { send; drop; }
        implementation = group;
    }
    table second {
        key = { hdr.inner.flags : range; hdr.inner.isValid() : exact @name("has_inner"); }
        actions = { drop; measure; }
        implementation = shared;
    }
    table fixed {
        key = { hdr.frame.type_ : exact; }
        actions = { pace; measure; }
        const default_action = measure(0x01020A27);
        const entries = { 0x800 : measure(5); }
        meters = speed;
    }
    apply {
        forward.apply();
        balance.apply();
        second.apply();
        fixed.apply();
        last_seen.write(0, (bit<40>) sm.ingress_global_timestamp);
        report_t report;
        report.who = hdr.frame.src;
        report.what = hdr.frame.type_;
        digest<report_t>(1, report);
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action drop() { mark_to_drop(sm); }
    table forward {
        key = { sm.egress_port : exact; }
        actions = { drop; NoAction; }
    }
    apply { forward.apply(); }
}

control Compute(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

@pkginfo(name = "example", version = "1.2", organization = "none") @brief("an example")
V1Switch(P(), Verify(), I(), E(), Compute(), D()) main;
