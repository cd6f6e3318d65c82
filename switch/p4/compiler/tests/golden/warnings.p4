#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> ttl; }
struct headers_t { h_t ip; }
struct meta_t { bit<8> hops; }

parser Parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        pkt.extract(hdr.ip);
        transition select(hdr.ip.ttl) {
            5 .. 3: accept;
            16 .. 40: accept;
            0x20 &&& 0xf8: lately;
            0 .. 255: lately;
            default: accept;
            7: reject;
        }
    }
    state lately { transition accept; }
    state lost { }
}

@deprecated("count them in the controller")
bit<8> spent(in bit<8> ttl) {
    return 255 - ttl;
}

control Nobody(inout meta_t meta) { apply {} }

control Pipe(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    bit<8> limit = 300;
    @noWarn("unused") bit<8> spare = -1;
    action both(inout bit<8> a, inout bit<8> b) { a = b; }
    action drop(bit<8> why) { mark_to_drop(sm); }
    table routes {
        key = { hdr.ip.ttl : ternary; 8w4 : exact @name("four"); }
        actions = { drop; NoAction; }
        sise = 64;
        entries = {
            priority = 1: (_, 4) : drop(1);
            priority = 2: (3, 4) : drop(2);
        }
    }
    action keep(out bit<8> kept) { if (meta.hops > 3) { kept = 1; } }
    apply {
        bit<8> unset;
        meta.hops = unset;
        keep(unset);
        hdr.ip.setInvalid();
        hdr.ip.ttl = 1;
        hdr.ip.setValid();
        bit<8> limit = spent(hdr.ip.ttl) << 9;
        both(meta.hops, meta.hops);
        switch (routes.apply().action_run) {
            drop: { meta.hops = limit; }
            NoAction:
        }
    }
}

control Check(inout headers_t hdr, inout meta_t meta) { apply {} }
control Out(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply {} }
control Deparse(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(Parse(), Check(), Pipe(), Out(), Check(), Deparse()) main;
