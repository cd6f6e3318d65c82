// Headers: conditions, tables, stacks, unions, copies.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<16> b; }
header g_t { bit<8> c; }
header_union u_t { h_t h; g_t g; }
struct headers_t { h_t h; h_t[3] s; u_t u; }
struct meta_t { bit<8> x; }

parser Parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        meta.x = hdr.h.a; //~ the invalid header `hdr.h`
        //~^ `hdr.h.a` may be uninitialized
        pkt.extract(hdr.h);
        transition select(hdr.h.a) {
            0: done;
            1: again;
            default: accept;
        }
    }
    state again {
        pkt.extract(hdr.s.next);
        meta.x = hdr.s.last.a;
        hdr.h = hdr.s.next; //~ `hdr.s.next` is read
        transition select(hdr.s.last.a) {
            0: again;
            default: done;
        }
    }
    state done {
        transition select(hdr.s[0].a) { //~ the potentially invalid header `hdr.s[0]`
            //~^ `hdr.s[0].a` may be uninitialized
            0: either;
            default: accept;
        }
    }
    state either {
        pkt.extract(hdr.u.g);
        meta.x = hdr.u.g.c;
        meta.x = hdr.u.h.a; //~ the invalid header `hdr.u.h`
        //~^ `hdr.u.h.a` may be uninitialized
        transition accept;
    }
}

void fill(out h_t h) {
    h.setValid();
    h.a = 1;
    h.b = 2;
}

void leave(out h_t h) { }

control Pipe(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    h_t own;
    action add() { own = { 1, 2 }; }
    action remove() { hdr.h.setInvalid(); }
    action pass(in h_t from, out h_t to) { to = from; }
    table shape {
        key = { hdr.h.isValid(): exact; }
        actions = { add; remove; NoAction; }
        default_action = NoAction;
    }
    apply {
        own.a = 1; //~ the invalid header `own`
        if (own.isValid()) {
            own.a = 1;
            own.setInvalid();
            own.a = 2; //~ the invalid header `own`
        }
        shape.apply();
        meta.x = own.a; //~ the potentially invalid header `own`
        // A table may have removed it: which packets, the control plane knows.
        hdr.h.a = 1;
        if (!hdr.h.isValid()) {
            hdr.h.a = 2; //~ the invalid header `hdr.h`
        } else {
            hdr.h.a = 3;
        }
        hdr.h.a = 4;
        if (!hdr.s[1].isValid() || hdr.s[1].a == 0) {
            return;
        }
        hdr.s[1].a = 5;
        h_t copy = hdr.h;
        copy.a = 6;
        pass(copy, own);
        own.a = 7;
        fill(own);
        own.a = 8;
        leave(own);
        own.a = 9; //~ the invalid header `own`
        own.setValid();
        meta.x = own.a;
        own.setInvalid();
        hdr.s[hdr.h.a] = own;
        hdr.s[0] = own;
        hdr.s[0].a = 10; //~ the invalid header `hdr.s[0]`
        hdr.s.push_front(1);
        hdr.s[0].a = 11;
        hdr.u.h.setValid();
        hdr.u.h.a = 12;
        hdr.u.g.c = 13; //~ the invalid header `hdr.u.g`
        if (hdr.u.isValid()) {
            hdr.u.g.c = 14;
        }
        exit;
    }
}

control Check(inout headers_t hdr, inout meta_t meta) { apply {} }
control Out(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply {} }
control Deparse(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.h); } }
V1Switch(Parse(), Check(), Pipe(), Out(), Check(), Deparse()) main;
