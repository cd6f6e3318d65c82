// Variable-length headers: IPv4 options as varbit behind a lookahead, a record skipped with advance, its bytes gone from the output.
#include "../include/common.p4"

header options_t { varbit<320> data; }
header trailer_t { bit<16> value; }

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    options_t  options;
    trailer_t  trailer;
}
struct meta_t {
    bit<8> first_option;
}

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl) {
            0 .. 4: accept;
            5: record;
            default: options;
        }
    }
    state options {
        meta.first_option = packet.lookahead<bit<8>>();
        packet.extract(hdr.options, (bit<32>)(((bit<16>)hdr.ipv4.ihl - 5) << 5));
        transition record;
    }
    // A length byte, that many bytes to skip, then the trailer.
    state record {
        bit<8> skip = packet.lookahead<bit<8>>();
        packet.advance(8 + ((bit<32>)skip << 3));
        packet.extract(hdr.trailer);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.parser_error == error.PacketTooShort) {
            sm.egress_spec = 3;
        } else if (sm.parser_error != error.NoError) {
            mark_to_drop(sm);
        } else {
            sm.egress_spec = 2;
            hdr.trailer.value = hdr.trailer.value + (bit<16>)meta.first_option;
        }
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout meta_t meta) { apply { } }
control SwitchDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;
