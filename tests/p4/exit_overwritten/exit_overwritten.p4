// After each table whose action may `exit` something is assigned over: what stood before counts.
#include "../include/common.p4"

header h_t {
    bit<8> table_no;
    bit<8> leaves;
    bit<8> field;
    bit<8> meta;
    bit<8> egress;
}
header tail_t { bit<8> v; }
struct headers_t {
    h_t    h;
    tail_t tail;
}
struct meta_t {
    bit<8> v;
    bit<8> unset;
}

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.h);
        packet.extract(hdr.tail);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    register<bit<8>>(1) stored;
    action_profile(8) shared;

    action leave() { exit; }
    action leave_with(bit<8> v) {
        hdr.h.field = v;
        exit;
    }
    // Conditional within the action.
    action leave_if() {
        if (hdr.h.leaves == 1) { exit; }
        meta.v = 0x77;
    }

    table by_entry {
        key = { hdr.h.leaves : exact; }
        actions = { leave; NoAction; }
        const default_action = NoAction();
    }
    table before_drop {
        key = { hdr.h.leaves : exact; }
        actions = { leave; NoAction; }
        const default_action = NoAction();
    }
    table after_drop {
        key = { hdr.h.leaves : exact; }
        actions = { leave; NoAction; }
        const default_action = NoAction();
    }
    table before_valid {
        key = { hdr.h.leaves : exact; }
        actions = { leave; NoAction; }
        const default_action = NoAction();
    }
    table before_copy {
        key = { hdr.h.leaves : exact; }
        actions = { leave; NoAction; }
        const default_action = NoAction();
    }
    table before_read {
        key = { hdr.h.leaves : exact; }
        actions = { leave; NoAction; }
        const default_action = NoAction();
    }
    table by_argument {
        key = { hdr.h.leaves : exact; }
        actions = { leave_with; NoAction; }
        default_action = NoAction();
    }
    // A miss leaves, a hit stays.
    table by_default {
        key = { hdr.h.leaves : exact; }
        actions = { leave; NoAction; }
        const default_action = leave();
        const entries = { 0 : NoAction(); }
    }
    table by_profile {
        key = { hdr.h.leaves : exact; }
        actions = { leave; NoAction; }
        implementation = shared;
    }
    table by_condition {
        key = { hdr.h.leaves : exact; }
        actions = { leave_if; }
        default_action = leave_if();
    }
    // Without key, its default may be changed: it stands in no pipeline in place.
    table by_no_key {
        actions = { leave; leave_if; NoAction; }
        default_action = leave_if();
    }

    apply {
        sm.egress_spec = 5;
        hdr.h.field = 0x11;
        meta.v = 0x22;
        if (hdr.h.table_no == 0) {
            by_entry.apply();
        } else if (hdr.h.table_no == 1) {
            by_argument.apply();
        } else if (hdr.h.table_no == 2) {
            by_default.apply();
        } else if (hdr.h.table_no == 3) {
            by_profile.apply();
        } else if (hdr.h.table_no == 4) {
            by_condition.apply();
        } else if (hdr.h.table_no == 5) {
            by_no_key.apply();
        } else if (hdr.h.table_no == 6) {
            // A port, then a drop.
            before_drop.apply();
            mark_to_drop(sm);
            return;
        } else if (hdr.h.table_no == 7) {
            // A drop, then a port.
            mark_to_drop(sm);
            after_drop.apply();
        } else if (hdr.h.table_no == 8) {
            // Validity.
            hdr.tail.setInvalid();
            before_valid.apply();
            hdr.tail.setValid();
            hdr.tail.v = 0x99;
        } else if (hdr.h.table_no == 9) {
            // A header as a whole.
            tail_t other = hdr.tail;
            other.v = other.v + 1;
            hdr.tail = other;
            before_copy.apply();
            other.v = other.v + 0x10;
            hdr.tail = other;
        } else if (hdr.h.table_no == 10) {
            // What an extern reads.
            stored.write(0, 0x33);
            stored.read(meta.v, 0);
            before_read.apply();
            stored.write(0, 0x44);
            stored.read(meta.v, 0);
            sm.egress_spec = 3;
            hdr.h.field = 0x55;
            meta.unset = 1;
            return;
        } else if (hdr.h.leaves == 1) {
            exit;
        }
        sm.egress_spec = 3;
        hdr.h.field = 0x55;
        meta.v = 0x66;
        // Nobody else writes it: it must not be that of the packet before.
        meta.unset = 1;
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action leave() { exit; }
    table in_egress {
        key = { hdr.h.egress : exact; }
        actions = { leave; NoAction; }
        default_action = NoAction();
    }
    apply {
        hdr.h.meta = meta.v + meta.unset;
        in_egress.apply();
        hdr.h.meta = 0xee;
        hdr.tail.setInvalid();
    }
}
control Compute(inout headers_t hdr, inout meta_t meta) { apply { } }
control SwitchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.h);
        packet.emit(hdr.tail);
    }
}

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;
