// The switch as a calculator: operands in, result out by the port it came from. Const entries; lookahead guards the magic word.
#include "../include/common.p4"

header calc_t {
    bit<8>  magic1;
    bit<8>  magic2;
    bit<8>  version;
    bit<8>  operation;
    bit<32> a;
    bit<32> b;
    bit<32> result;
}

struct headers_t {
    ethernet_t ethernet;
    calc_t     calc;
}
struct meta_t { }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x1234: check;
            default: accept;
        }
    }
    state check {
        transition select(packet.lookahead<calc_t>().magic1, packet.lookahead<calc_t>().magic2,
                          packet.lookahead<calc_t>().version) {
            (0x50, 0x34, 0x01): calc;
            default: accept;
        }
    }
    state calc {
        packet.extract(hdr.calc);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action reply(bit<32> result) {
        mac_t swap = hdr.ethernet.dst;
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = swap;
        hdr.calc.result = result;
        sm.egress_spec = sm.ingress_port;
    }
    action add() { reply(hdr.calc.a + hdr.calc.b); }
    action subtract() { reply(hdr.calc.a - hdr.calc.b); }
    action bit_and() { reply(hdr.calc.a & hdr.calc.b); }
    action bit_or() { reply(hdr.calc.a | hdr.calc.b); }
    action bit_xor() { reply(hdr.calc.a ^ hdr.calc.b); }
    action multiply() { reply(hdr.calc.a * hdr.calc.b); }
    action saturate() { reply(hdr.calc.a |+| hdr.calc.b); }
    action shift() { reply(hdr.calc.a << (bit<8>)hdr.calc.b); }
    action refuse() { mark_to_drop(sm); }

    table calculate {
        key = { hdr.calc.operation : exact; }
        actions = { add; subtract; bit_and; bit_or; bit_xor; multiply; saturate; shift; refuse; }
        const default_action = refuse();
        const entries = {
            0x2b: add();
            0x2d: subtract();
            0x26: bit_and();
            0x7c: bit_or();
            0x5e: bit_xor();
            0x2a: multiply();
            0x73: saturate();
            0x3c: shift();
        }
    }
    apply {
        if (hdr.calc.isValid()) {
            calculate.apply();
        } else {
            refuse();
        }
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout meta_t meta) { apply { } }
control SwitchDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;
