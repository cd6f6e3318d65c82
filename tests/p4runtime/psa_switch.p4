// A switch for PSA: sends by the destination's entry to a port or a group, counts, and learns sources by digest.

#include <core.p4>
#include <psa.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct learnt_t {
    bit<48> source;
    PortId_t port;
}

struct metadata_t {
    bool known;
    learnt_t learnt;
}

struct empty_t { }

parser IngressParserImpl(packet_in buffer, out headers_t hdr, inout metadata_t meta, in psa_ingress_parser_input_metadata_t istd,
                         in empty_t resubmit_meta, in empty_t recirculate_meta) {
    state start {
        buffer.extract(hdr.ethernet);
        transition accept;
    }
}

control IngressImpl(inout headers_t hdr, inout metadata_t meta, in psa_ingress_input_metadata_t istd,
                    inout psa_ingress_output_metadata_t ostd) {
    DirectCounter<bit<64>>(PSA_CounterType_t.PACKETS) forwarded;

    action send(PortId_t port) {
        forwarded.count();
        send_to_port(ostd, port);
    }
    action flood(MulticastGroup_t group) {
        forwarded.count();
        multicast(ostd, group);
    }
    action know() {
        meta.known = true;
    }
    action drop() {
        ingress_drop(ostd);
    }
    table sources {
        key = { hdr.ethernet.src: exact; }
        actions = { know; NoAction; }
        default_action = NoAction();
    }
    table forward {
        key = { hdr.ethernet.dst: exact; }
        actions = { send; flood; drop; }
        psa_direct_counter = forwarded;
        default_action = drop();
    }
    apply {
        meta.known = false;
        sources.apply();
        meta.learnt = { hdr.ethernet.src, istd.ingress_port };
        forward.apply();
    }
}

control IngressDeparserImpl(packet_out buffer, out empty_t clone_i2e_meta, out empty_t resubmit_meta, out empty_t normal_meta,
                            inout headers_t hdr, in metadata_t meta, in psa_ingress_output_metadata_t istd) {
    Digest<learnt_t>() learn;
    apply {
        if (!meta.known) {
            learn.pack(meta.learnt);
        }
        buffer.emit(hdr.ethernet);
    }
}

parser EgressParserImpl(packet_in buffer, out headers_t hdr, inout metadata_t meta, in psa_egress_parser_input_metadata_t istd,
                        in empty_t normal_meta, in empty_t clone_i2e_meta, in empty_t clone_e2e_meta) {
    state start {
        buffer.extract(hdr.ethernet);
        transition accept;
    }
}

control EgressImpl(inout headers_t hdr, inout metadata_t meta, in psa_egress_input_metadata_t istd,
                   inout psa_egress_output_metadata_t ostd) {
    apply {
        // A replica tells its number.
        if (istd.packet_path == PSA_PacketPath_t.NORMAL_MULTICAST) {
            hdr.ethernet.type = (bit<16>) (EgressInstanceUint_t) istd.instance;
        }
    }
}

control EgressDeparserImpl(packet_out buffer, out empty_t clone_e2e_meta, out empty_t recirculate_meta, inout headers_t hdr,
                           in metadata_t meta, in psa_egress_output_metadata_t istd, in psa_egress_deparser_input_metadata_t edstd) {
    apply {
        buffer.emit(hdr.ethernet);
    }
}

IngressPipeline(IngressParserImpl(), IngressImpl(), IngressDeparserImpl()) ip;
EgressPipeline(EgressParserImpl(), EgressImpl(), EgressDeparserImpl()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
