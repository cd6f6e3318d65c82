// A stack of header unions indexed by a variable: members made valid, written, read, and copied as a whole.
#include <core.p4>
#include <v1model.p4>

header head_t { bit<4> command; bit<4> which; bit<16> seen; }
header short_t { bit<8> x; }
header long_t { bit<16> y; }
header_union either_t { short_t s; long_t l; }

struct headers_t {
    head_t      head;
    either_t[2] parts;
}
struct meta_t { }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.head);
        packet.extract(hdr.parts.next.s);
        packet.extract(hdr.parts.next.l);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        bit<4> i = hdr.head.which;
        sm.egress_spec = 2;
        if (hdr.head.command == 0) {
            // Writing.
            hdr.parts[i].s.setValid();
            hdr.parts[i].s.x = 0x77;
        } else if (hdr.head.command == 1) {
            // Reading, in a condition and as a value.
            if (hdr.parts[i].l.isValid()) {
                hdr.head.seen = hdr.parts[i].l.y + 1;
            } else if (hdr.parts[i].isValid()) {
                hdr.head.seen = 8w0 ++ hdr.parts[i].s.x;
            }
        } else if (hdr.head.command == 2) {
            // A whole element, from a variable index to a constant one.
            hdr.parts[1] = hdr.parts[i];
        } else {
            hdr.parts[i].l.setInvalid();
        }
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout meta_t meta) { apply { } }
control SwitchDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;
