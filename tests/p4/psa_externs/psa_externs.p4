// The extern objects of PSA. Ethernet type 0x0800: the Internet checksum of IPv4, verified in ingress and updated in egress.
// 0x0901: hashes and checksums of nine bytes. 0x0902: state that lives from packet to packet.

#include "../include/psa_common.p4"

error { WrongChecksum }

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> length;
    bit<16> id;
    bit<16> fragment;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

#define WITHOUT_CHECKSUM(h) { h.version, h.ihl, h.tos, h.length, h.id, h.fragment, h.ttl, h.protocol, h.src, h.dst }

header hashes_t {
    bit<32> first;
    bit<40> rest;
    bit<32> crc32;
    bit<16> crc16;
    bit<16> modulo;
    bit<32> in_parts;
    bit<16> sum_of_first;
    bit<4>  nibble;
    bit<12> identity;
}

header state_t {
    bit<8>  index;
    bit<32> seen;
    bit<8>  colour;
    bit<8>  direct_colour;
    bit<8>  random;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    hashes_t   hashes;
    state_t    state;
}

struct metadata_t { }

parser Headers(packet_in buffer, out headers_t hdr) {
    state start {
        buffer.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            0x0901: hashes;
            0x0902: state;
            default: accept;
        }
    }
    state ipv4 {
        buffer.extract(hdr.ipv4);
        transition accept;
    }
    state hashes {
        buffer.extract(hdr.hashes);
        transition accept;
    }
    state state {
        buffer.extract(hdr.state);
        transition accept;
    }
}

parser IngressParserImpl(packet_in buffer, out headers_t hdr, inout metadata_t meta, in psa_ingress_parser_input_metadata_t istd,
                         in empty_t resubmit_meta, in empty_t recirculate_meta) {
    Headers() headers;
    InternetChecksum() sum;
    state start {
        headers.apply(buffer, hdr);
        transition select(hdr.ipv4.isValid()) {
            true: checked;
            default: accept;
        }
    }
    state checked {
        sum.add(WITHOUT_CHECKSUM(hdr.ipv4));
        verify(sum.get() == hdr.ipv4.checksum, error.WrongChecksum);
        transition accept;
    }
}

bit<8> colour_code(in PSA_MeterColor_t colour) {
    if (colour == PSA_MeterColor_t.GREEN) {
        return 0x67;
    } else if (colour == PSA_MeterColor_t.YELLOW) {
        return 0x79;
    }
    return 0x72;
}

control IngressImpl(inout headers_t hdr, inout metadata_t meta, in psa_ingress_input_metadata_t istd,
                    inout psa_ingress_output_metadata_t ostd) {
    Hash<bit<32>>(PSA_HashAlgorithm_t.CRC32) crc32;
    Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) crc16;
    Hash<bit<12>>(PSA_HashAlgorithm_t.IDENTITY) identity;
    Checksum<bit<32>>(PSA_HashAlgorithm_t.CRC32) in_parts;
    Checksum<bit<16>>(PSA_HashAlgorithm_t.ONES_COMPLEMENT16) sum;
    Counter<bit<64>, bit<8>>(16, PSA_CounterType_t.PACKETS_AND_BYTES) packets;
    DirectCounter<bit<64>>(PSA_CounterType_t.PACKETS) hits;
    Meter<bit<8>>(16, PSA_MeterType_t.PACKETS) meter;
    DirectMeter(PSA_MeterType_t.PACKETS) direct_meter;
    Register<bit<32>, bit<8>>(16) seen;
    Random<bit<8>>(5, 5) five;

    action measure() {
        hits.count();
        hdr.state.direct_colour = colour_code(direct_meter.execute());
    }
    table measured {
        key = { hdr.state.index: exact; }
        actions = { measure; NoAction; }
        psa_direct_counter = hits;
        psa_direct_meter = direct_meter;
        default_action = NoAction();
    }
    apply {
        if (istd.parser_error != error.NoError) {
            ingress_drop(ostd);
            return;
        }
        send_to_port(ostd, (PortId_t) 2);
        if (hdr.hashes.isValid()) {
            hdr.hashes.crc32 = crc32.get_hash({ hdr.hashes.first, hdr.hashes.rest });
            hdr.hashes.crc16 = crc16.get_hash({ hdr.hashes.first, hdr.hashes.rest });
            hdr.hashes.modulo = (bit<16>) crc32.get_hash(32w10, { hdr.hashes.first, hdr.hashes.rest }, 32w100);
            in_parts.update(hdr.hashes.first);
            in_parts.update({ hdr.hashes.rest });
            hdr.hashes.in_parts = in_parts.get();
            sum.update(hdr.hashes.first);
            hdr.hashes.sum_of_first = sum.get();
            hdr.hashes.identity = identity.get_hash({ hdr.hashes.nibble, 8w0xcd });
        }
        if (hdr.state.isValid()) {
            packets.count(hdr.state.index);
            hdr.state.seen = seen.read(hdr.state.index) + 1;
            seen.write(hdr.state.index, hdr.state.seen);
            hdr.state.colour = colour_code(meter.execute(hdr.state.index, PSA_MeterColor_t.YELLOW));
            hdr.state.random = five.read();
            measured.apply();
        }
    }
}

control IngressDeparserImpl(packet_out buffer, out empty_t clone_i2e_meta, out empty_t resubmit_meta, out empty_t normal_meta,
                            inout headers_t hdr, in metadata_t meta, in psa_ingress_output_metadata_t istd) {
    apply {
        buffer.emit(hdr);
    }
}

parser EgressParserImpl(packet_in buffer, out headers_t hdr, inout metadata_t meta, in psa_egress_parser_input_metadata_t istd,
                        in empty_t normal_meta, in empty_t clone_i2e_meta, in empty_t clone_e2e_meta) {
    Headers() headers;
    state start {
        headers.apply(buffer, hdr);
        transition accept;
    }
}

control EgressImpl(inout headers_t hdr, inout metadata_t meta, in psa_egress_input_metadata_t istd,
                   inout psa_egress_output_metadata_t ostd) {
    apply { }
}

control EgressDeparserImpl(packet_out buffer, out empty_t clone_e2e_meta, out empty_t recirculate_meta, inout headers_t hdr,
                           in metadata_t meta, in psa_egress_output_metadata_t istd, in psa_egress_deparser_input_metadata_t edstd) {
    InternetChecksum() sum;
    apply {
        if (hdr.ipv4.isValid()) {
            // RFC 1624: take away what changes, add what it becomes.
            sum.set_state(~hdr.ipv4.checksum);
            sum.subtract({ hdr.ipv4.ttl, hdr.ipv4.protocol });
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            sum.add({ hdr.ipv4.ttl, hdr.ipv4.protocol });
            hdr.ipv4.checksum = sum.get();
        }
        buffer.emit(hdr);
    }
}

IngressPipeline(IngressParserImpl(), IngressImpl(), IngressDeparserImpl()) ip;
EgressPipeline(EgressParserImpl(), EgressImpl(), EgressDeparserImpl()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
