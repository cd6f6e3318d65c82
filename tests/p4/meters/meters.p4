// Two-rate three-colour meters: an array by port, and one bound to a table's entries. Colours end up in the packet.
#include "../include/common.p4"

header colour_t {
    bit<8> key;
    bit<8> indirect;
    bit<8> direct;
}

struct headers_t { colour_t colour; }
struct meta_t { bit<2> colour; }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.colour);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    meter(4, MeterType.packets) by_port;
    direct_meter<bit<2>>(MeterType.bytes) by_entry;
    direct_counter(CounterType.packets_and_bytes) hits;

    action forward() {
        sm.egress_spec = 2;
        by_entry.read(meta.colour);
        hits.count();
    }
    table entries_ {
        key = { hdr.colour.key : exact; }
        actions = { forward; NoAction; }
        default_action = NoAction();
        meters = by_entry;
        counters = hits;
    }
    apply {
        bit<2> colour;
        mark_to_drop(sm);
        if (entries_.apply().hit) {
            hdr.colour.direct = (bit<8>)meta.colour;
        }
        by_port.execute_meter((bit<32>)sm.ingress_port, colour);
        hdr.colour.indirect = (bit<8>)colour;
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout meta_t meta) { apply { } }
control SwitchDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;
