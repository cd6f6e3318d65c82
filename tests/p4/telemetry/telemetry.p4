// In-band telemetry in an IPv4 option: each switch pushes its id and queue depth; the parser counts the records down in metadata.
#include "../include/common.p4"

const bit<5> OPTION_TELEMETRY = 31;
#define RECORDS 9

header option_t {
    bit<1> copied;
    bit<2> class;
    bit<5> number;
    bit<8> length;
}
header count_t { bit<16> records; }
header record_t {
    bit<32> switch_id;
    bit<32> depth;
}

struct headers_t {
    ethernet_t        ethernet;
    ipv4_t            ipv4;
    option_t          option;
    count_t           count;
    record_t[RECORDS] records;
}
struct parse_t { bit<16> left; }
struct meta_t { parse_t parse; }

error { OptionTooShort }

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
        verify(hdr.ipv4.ihl >= 5, error.OptionTooShort);
        transition select(hdr.ipv4.ihl) {
            5: accept;
            default: option;
        }
    }
    state option {
        packet.extract(hdr.option);
        transition select(hdr.option.number) {
            OPTION_TELEMETRY: count;
            default: accept;
        }
    }
    state count {
        packet.extract(hdr.count);
        meta.parse.left = hdr.count.records;
        transition select(meta.parse.left) {
            0: accept;
            default: record;
        }
    }
    state record {
        packet.extract(hdr.records.next);
        meta.parse.left = meta.parse.left - 1;
        transition select(meta.parse.left) {
            0: accept;
            default: record;
        }
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.parser_error != error.NoError) {
            mark_to_drop(sm);
        } else {
            sm.egress_spec = sm.ingress_port + 1;
        }
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action record(bit<32> id) {
        hdr.count.records = hdr.count.records + 1;
        hdr.records.push_front(1);
        hdr.records[0].setValid();
        hdr.records[0].switch_id = id;
        hdr.records[0].depth = (bit<32>)sm.deq_qdepth;
        hdr.ipv4.ihl = hdr.ipv4.ihl + 2;
        hdr.option.length = hdr.option.length + 8;
        hdr.ipv4.total_length = hdr.ipv4.total_length + 8;
    }
    table telemetry {
        actions = { record; NoAction; }
        default_action = NoAction();
    }
    apply {
        if (hdr.count.isValid()) {
            telemetry.apply();
        }
    }
}

control Compute(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchDeparser(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;
