// PSA: a parser, a pipeline and a deparser twice; metadata handed on; extern objects.
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

struct metadata_t {
    bit<8> count;
}

struct handed_t {
    bit<8> count;
}

struct empty_t { }

struct seen_t {
    bit<48>  src;
    PortId_t port;
}

parser IngressParserImpl(packet_in buffer, out headers_t hdr, inout metadata_t meta, in psa_ingress_parser_input_metadata_t istd,
                         in handed_t resubmit_meta, in empty_t recirculate_meta) {
    state start {
        buffer.extract(hdr.ethernet);
        meta.count = resubmit_meta.count;
        transition accept;
    }
}

control IngressImpl(inout headers_t hdr, inout metadata_t meta, in psa_ingress_input_metadata_t istd,
                    inout psa_ingress_output_metadata_t ostd) {
    Counter<bit<64>, PortId_t>(512, PSA_CounterType_t.BYTES) by_port;
    Meter<bit<8>>(16, PSA_MeterType_t.PACKETS) meter;
    DirectCounter<bit<64>>(PSA_CounterType_t.PACKETS) hits;
    Register<bit<16>, bit<8>>(4) last;
    Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) hash;
    ActionSelector(PSA_HashAlgorithm_t.CRC32, 64, 16) selector;

    action forward(PortId_t port) {
        send_to_port(ostd, port);
    }
    table destinations {
        key = {
            hdr.ethernet.dst: exact;
            hdr.ethernet.src: selector;
        }
        actions = { forward; NoAction; }
        psa_implementation = selector;
        psa_idle_timeout = PSA_IdleTimeout_t.NOTIFY_CONTROL;
        size = 128;
    }
    table sources {
        key = { hdr.ethernet.src: exact; }
        actions = { NoAction; }
        psa_direct_counter = hits;
    }
    apply {
        by_port.count(istd.ingress_port);
        destinations.apply();
        sources.apply();
        last.write(3, last.read(2) + hash.get_hash({ hdr.ethernet.dst, hdr.ethernet.src }));
        if (meter.execute(1) == PSA_MeterColor_t.RED) {
            ingress_drop(ostd);
        }
        ostd.resubmit = meta.count == 0;
    }
}

control IngressDeparserImpl(packet_out buffer, out empty_t clone_i2e_meta, out handed_t resubmit_meta, out empty_t normal_meta,
                            inout headers_t hdr, in metadata_t meta, in psa_ingress_output_metadata_t istd) {
    Digest<seen_t>() seen;
    apply {
        if (psa_resubmit(istd)) {
            resubmit_meta.count = 1;
        }
        if (psa_normal(istd)) {
            seen.pack({ hdr.ethernet.src, istd.egress_port });
        }
        buffer.emit(hdr.ethernet);
    }
}

parser EgressParserImpl(packet_in buffer, out headers_t hdr, inout empty_t meta, in psa_egress_parser_input_metadata_t istd,
                        in empty_t normal_meta, in empty_t clone_i2e_meta, in empty_t clone_e2e_meta) {
    InternetChecksum() sum;
    state start {
        buffer.extract(hdr.ethernet);
        sum.add(hdr.ethernet.dst);
        verify(sum.get() != 0, error.HeaderTooShort);
        transition accept;
    }
}

control EgressImpl(inout headers_t hdr, inout empty_t meta, in psa_egress_input_metadata_t istd,
                   inout psa_egress_output_metadata_t ostd) {
    apply {
        if (istd.parser_error != error.NoError) {
            egress_drop(ostd);
        }
    }
}

control EgressDeparserImpl(packet_out buffer, out empty_t clone_e2e_meta, out empty_t recirculate_meta, inout headers_t hdr,
                           in empty_t meta, in psa_egress_output_metadata_t istd, in psa_egress_deparser_input_metadata_t edstd) {
    apply {
        buffer.emit(hdr.ethernet);
    }
}

IngressPipeline(IngressParserImpl(), IngressImpl(), IngressDeparserImpl()) ip;
EgressPipeline(EgressParserImpl(), EgressImpl(), EgressDeparserImpl()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
