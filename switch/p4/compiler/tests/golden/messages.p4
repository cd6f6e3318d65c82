#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> ttl; }
struct headers_t { h_t ip; }
struct meta_t { bit<8> hops; }

parser Parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        pkt.extract(hdr.ip);
        transition acept;
    }
}

control Pipe(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action forward(bit<9> port) {
        bit<9> port = 1;
        sm.egress_spec = port;
    }
    table routes {
        key = { hdr.ip.ttl : exact; }
        actions = { forward; NoAction; }
        const entries = {
            1 : forward(1);
            1 : forward(2);
            2 : drop();
        }
    }
    apply {
        hdr.ip.tll = hdr.ip.ttl - 1;
        meta.hops = hdr.ip;
        routes.aply();
    }
}
