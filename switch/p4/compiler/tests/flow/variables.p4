// Reads of variables: paths, loops, structs by their fields, out parameters.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<16> b; }
struct headers_t { h_t h; h_t[2] s; }
struct inner_t { bit<8> x; bit<8> y; }
struct meta_t { bit<8> x; inner_t inner; }

parser Parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        pkt.extract(hdr.h);
        transition accept;
    }
}

bit<8> first(in bit<8> a, out bit<8> rest) { //~ out parameter `rest` may be uninitialized when `first` ends
    if (a == 0) {
        return rest; //~ `rest` may be uninitialized
    }
    rest = a - 1;
    return a;
}

bit<8> all_ways(in bit<8> a, out bit<8> rest) {
    if (a == 0) {
        rest = 1;
        return 0;
    } else {
        rest = a;
    }
    return rest;
}

control Pipe(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    bit<8> shared;
    inner_t parts;
    bit<16> half;
    tuple<bit<8>, bit<8>> pair;

    action set_shared() { shared = 1; }
    action use_shared() { meta.x = shared; } //~ `shared` may be uninitialized
    table maybe {
        key = { hdr.h.a: exact; }
        actions = { set_shared; NoAction; }
        default_action = NoAction;
    }
    table surely {
        key = { parts.y: exact; } //~ `parts.y` may be uninitialized
        actions = { set_shared; }
        default_action = set_shared;
    }
    bit<8> by_case;
    action set_case(bit<8> v) { by_case = v; }
    action leave() { exit; }
    table cases {
        key = { hdr.h.b: exact; }
        actions = { set_case; leave; NoAction; }
    }
    apply {
        switch (cases.apply().action_run) {
            set_case: { meta.x = by_case; }
            leave: { meta.x = by_case; }
            default: {
                meta.x = by_case; //~ `by_case` may be uninitialized
                by_case = 0;
            }
        }
        meta.x = by_case;
        use_shared();
        maybe.apply();
        meta.x = shared; //~ `shared` may be uninitialized
        surely.apply();
        meta.x = shared;
        parts.x = 1;
        meta.inner = parts; //~ `parts.y` may be uninitialized
        parts.y = parts.x;
        meta.inner = parts;
        half[7:0] = 1; //~ `half` may be uninitialized
        hdr.h.b = half;
        meta.x = pair[0]; //~ `pair[0]` may be uninitialized
        pair = { 1, 2 };
        meta.x = pair[1];
        bit<8> rest;
        meta.x = first(hdr.h.a, rest) + all_ways(hdr.h.a, _);
        meta.x = rest;
        bit<8> count;
        count += 1; //~ `count` may be uninitialized
        bit<8> last;
        for (bit<8> i in 0 .. 3) {
            if (i > 1) {
                meta.x = last; //~ `last` may be uninitialized
            }
            last = i;
        }
        bit<8> found;
        for (bit<8> i = 0; i < 4; i = i + 1) {
            if (i == hdr.h.a) {
                found = i;
                break;
            }
            if (i == 7) { continue; }
        }
        meta.x = found; //~ `found` may be uninitialized
        bit<8> level;
        switch (hdr.h.a) {
            1:
            2: { level = 1; }
            3: { exit; }
            default: { level = 3; }
        }
        meta.x = level;
        bit<8> part;
        switch (hdr.h.a) {
            1: { part = 1; }
        }
        meta.x = part; //~ `part` may be uninitialized
        bit<8> chosen;
        meta.x = hdr.h.a == 1 && chosen == 1 ? 8w1 : 2; //~ `chosen` may be uninitialized
        if (false) {
            meta.x = chosen;
        }
    }
}

control Unused(inout meta_t meta) {
    apply {
        bit<8> x;
        meta.x = x;
    }
}

control Check(inout headers_t hdr, inout meta_t meta) { apply {} }
control Out(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply {} }
control Deparse(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(Parse(), Check(), Pipe(), Out(), Check(), Deparse()) main;
