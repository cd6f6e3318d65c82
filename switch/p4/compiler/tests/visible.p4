// What P4Info shows of a program, in which order and by which names: what is used, and how p4c would have it after inlining.
#include <core.p4>
#include <v1model.p4>

const bit<32> FIRST = 0;
type bit<9> port_t;

header frame_h { bit<48> dst; bit<48> src; @name("kind") bit<16> type_; }
header label_h { bit<20> value; bit<12> rest; }

struct inner_t { bit<8> level; }
struct headers_t { frame_h frame; label_h[2] labels; }
struct meta_t {
    @name("renamed") inner_t inner;
    @name(".absolute") inner_t other;
    port_t port;
}

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.frame);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

action discard(inout standard_metadata_t sm) { mark_to_drop(sm); }
action quit() { exit; }
action raise(inout inner_t inner, bit<8> by) { inner.level = inner.level + by; }

control First(inout meta_t meta) {
    action level(bit<8> value) { meta.inner.level = value; }
    table one {
        key = { meta.other.level : exact; }
        actions = { level; quit; NoAction; }
    }
    apply { one.apply(); }
}

control Second(inout meta_t meta) {
    action level(bit<8> value) { meta.inner.level = value; }
    table one {
        key = { meta.inner.level : exact; }
        actions = { level; @defaultonly quit; }
        default_action = quit();
    }
    apply { one.apply(); }
}

@name("not_this_one")
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    @name("third") Second() declared;
    direct_counter(CounterType.packets) of_no_table;
    direct_counter(CounterType.packets) of_a_table;
    direct_meter<bit<2>>(MeterType.bytes) of_none_either;

    action never() { sm.egress_spec = 1; }
    action elsewhere() { sm.egress_spec = 2; }
    action only_called(bit<9> port) { sm.egress_spec = port; }
    action listed_and_called(bit<9> port) { sm.egress_spec = port; }
    @hidden action behind(bit<9> port) { sm.egress_spec = port; }
    action inside(bit<8> level) { meta.inner.level = level; }
    action outside(bit<8> level) { inside(level); }

    table never_applied {
        key = { hdr.frame.dst : exact; }
        actions = { never; discard(sm); }
    }
    table out_of_reach {
        key = { hdr.frame.dst : exact; }
        actions = { elsewhere; NoAction; }
    }
    @parts[1 == 1, 1 + 2 * 3, "text", !true] @more[on = 3 > 2, size = 1 << 4]
    table names {
        key = {
            hdr.frame.type_ : exact;
            meta.inner.level : exact;
            meta.other.level : ternary;
            hdr.frame.src & 0xff00 : exact;
            hdr.frame.dst[8 + 7:8] : exact;
            hdr.labels[FIRST].value : exact;
            hdr.labels[1].isValid() : exact;
            meta.port : exact;
        }
        actions = { quit; listed_and_called; outside; discard(sm); NoAction; }
        default_action = NoAction();
    }
    table chosen {
        key = { hdr.frame.src : selector; hdr.frame.dst : exact; }
        actions = { listed_and_called; discard(sm); }
        @name("members") @max_group_size(7) @note("in place")
        implementation = action_selector(HashAlgorithm.crc32, 64, 16);
        counters = of_a_table;
    }
    apply {
        if (false) {
            out_of_reach.apply();
        }
        behind(3);
        only_called(4);
        raise(meta.inner, 5);
        First.apply(meta);
        declared.apply(meta);
        names.apply();
        chosen.apply();
        listed_and_called(6);
        digest<tuple<bit<8>, bit<48>>>(1, { meta.inner.level, hdr.frame.src });
        digest<tuple<bit<8>>>(1, { meta.inner.level });
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    table late {
        key = { meta.inner.level : range; }
        actions = { raise(meta.inner); quit; NoAction; }
    }
    apply {
        discard(sm);
        late.apply();
    }
}

control Compute(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), Verify(), I(), E(), Compute(), D()) main;
