// Each path of a packet through PSA, and what goes with it. The last byte of the destination says which way to go, the byte before
// it names a port, a multicast group or a clone session. Egress writes into the source by which path the packet came (1 byte), which
// replica it is (2), its class of service (1) and what the deparser before it handed on (2).

#include "../include/psa_common.p4"

struct headers_t {
    ethernet_t ethernet;
}

struct handed_t {
    bit<16> value;
}

struct metadata_t {
    bit<16> value;
}

parser IngressParserImpl(packet_in buffer, out headers_t hdr, inout metadata_t meta, in psa_ingress_parser_input_metadata_t istd,
                         in handed_t resubmit_meta, in handed_t recirculate_meta) {
    state start {
        meta.value = 0;
        transition select(istd.packet_path) {
            PSA_PacketPath_t.RESUBMIT: resubmitted;
            PSA_PacketPath_t.RECIRCULATE: recirculated;
            default: ethernet;
        }
    }
    state resubmitted {
        meta.value = resubmit_meta.value;
        transition ethernet;
    }
    state recirculated {
        meta.value = recirculate_meta.value;
        transition ethernet;
    }
    state ethernet {
        buffer.extract(hdr.ethernet);
        transition accept;
    }
}

control IngressImpl(inout headers_t hdr, inout metadata_t meta, in psa_ingress_input_metadata_t istd,
                    inout psa_ingress_output_metadata_t ostd) {
    apply {
        bit<8> way = hdr.ethernet.dst[7:0];
        bit<8> to = hdr.ethernet.dst[15:8];
        ostd.class_of_service = (ClassOfService_t) 7;
        if (way == 1 || way == 5) {
            send_to_port(ostd, (PortId_t) (PortIdUint_t) to);
        } else if (way == 2) {
            multicast(ostd, (MulticastGroup_t) (MulticastGroupUint_t) to);
        } else if (way == 3) {
            ostd.clone = true;
            ostd.clone_session_id = (CloneSessionId_t) (CloneSessionIdUint_t) to;
        } else if (way == 4) {
            send_to_port(ostd, (PortId_t) (PortIdUint_t) to);
            ostd.resubmit = istd.packet_path != PSA_PacketPath_t.RESUBMIT;
        } else if (way == 6) {
            if (istd.packet_path == PSA_PacketPath_t.RECIRCULATE && istd.ingress_port == PSA_PORT_RECIRCULATE) {
                send_to_port(ostd, (PortId_t) (PortIdUint_t) to);
            } else {
                send_to_port(ostd, PSA_PORT_RECIRCULATE);
            }
        } else if (way == 7) {
            send_to_port(ostd, (PortId_t) (PortIdUint_t) to);
            ostd.resubmit = true;
            ingress_drop(ostd);
        } else if (way == 8) {
            // Both: what egress is given of the clone is the packet as it came in.
            hdr.ethernet.type = 0xffff;
            ostd.clone = true;
            ostd.clone_session_id = (CloneSessionId_t) 8;
            send_to_port(ostd, (PortId_t) (PortIdUint_t) to);
        }
    }
}

control IngressDeparserImpl(packet_out buffer, out handed_t clone_i2e_meta, out handed_t resubmit_meta, out handed_t normal_meta,
                            inout headers_t hdr, in metadata_t meta, in psa_ingress_output_metadata_t istd) {
    apply {
        if (psa_clone_i2e(istd)) {
            clone_i2e_meta.value = 0x3333;
        }
        if (psa_resubmit(istd)) {
            resubmit_meta.value = 0x2222;
        }
        if (psa_normal(istd)) {
            normal_meta.value = meta.value | 0x1000;
        }
        buffer.emit(hdr.ethernet);
    }
}

parser EgressParserImpl(packet_in buffer, out headers_t hdr, inout metadata_t meta, in psa_egress_parser_input_metadata_t istd,
                        in handed_t normal_meta, in handed_t clone_i2e_meta, in handed_t clone_e2e_meta) {
    state start {
        transition select(istd.packet_path) {
            PSA_PacketPath_t.CLONE_I2E: from_ingress;
            PSA_PacketPath_t.CLONE_E2E: from_egress;
            default: normal;
        }
    }
    state from_ingress {
        meta.value = clone_i2e_meta.value;
        transition ethernet;
    }
    state from_egress {
        meta.value = clone_e2e_meta.value;
        transition ethernet;
    }
    state normal {
        meta.value = normal_meta.value;
        transition ethernet;
    }
    state ethernet {
        buffer.extract(hdr.ethernet);
        transition accept;
    }
}

control EgressImpl(inout headers_t hdr, inout metadata_t meta, in psa_egress_input_metadata_t istd,
                   inout psa_egress_output_metadata_t ostd) {
    apply {
        bit<8> path = 0;
        if (istd.packet_path == PSA_PacketPath_t.NORMAL_UNICAST) {
            path = 1;
        } else if (istd.packet_path == PSA_PacketPath_t.NORMAL_MULTICAST) {
            path = 2;
        } else if (istd.packet_path == PSA_PacketPath_t.CLONE_I2E) {
            path = 3;
        } else if (istd.packet_path == PSA_PacketPath_t.CLONE_E2E) {
            path = 4;
        }
        bit<16> instance = (bit<16>) (EgressInstanceUint_t) istd.instance;
        bit<8> class = (bit<8>) (ClassOfServiceUint_t) istd.class_of_service;
        hdr.ethernet.src = path ++ instance ++ class ++ meta.value;
        if (hdr.ethernet.dst[7:0] == 5 && path == 1) {
            ostd.clone = true;
            ostd.clone_session_id = (CloneSessionId_t) 8;
        }
        // Port 13 takes nothing.
        if (istd.egress_port == (PortId_t) 13) {
            egress_drop(ostd);
        }
    }
}

control EgressDeparserImpl(packet_out buffer, out handed_t clone_e2e_meta, out handed_t recirculate_meta, inout headers_t hdr,
                           in metadata_t meta, in psa_egress_output_metadata_t istd, in psa_egress_deparser_input_metadata_t edstd) {
    apply {
        if (psa_clone_e2e(istd)) {
            clone_e2e_meta.value = 0x5555;
        }
        if (psa_recirculate(istd, edstd)) {
            recirculate_meta.value = 0x6666;
        }
        buffer.emit(hdr.ethernet);
    }
}

IngressPipeline(IngressParserImpl(), IngressImpl(), IngressDeparserImpl()) ip;
EgressPipeline(EgressParserImpl(), EgressImpl(), EgressDeparserImpl()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
