// Step marking per output port: packets that saw a queue above a threshold are marked, none is dropped (DCTCP's switch
// [RFC 8257 sec 3.1], and a ramp of width 0 [RFC 9332 sec A.1 step c]; as in Linux `ce_threshold`).
//
//   CE <- sojourn > delay threshold, or waiting packets on arrival >= K
//
// Integers as they come: microseconds and packets. It runs in egress, where a packet's own waiting time is known; marking on departure tells
// the sender as early as marking on arrival would, since the packet was there the whole time. Packets of a transport without ECN are left to
// the full queue.

control Step(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    counter(PORTS, CounterType.packets_and_bytes) marks;
    bit<32> longest = 0;  // microseconds
    bit<32> most = 0;     // packets

    action set_step(bit<32> threshold_us, bit<32> threshold_packets) {
        longest = threshold_us;
        most = threshold_packets;
    }

    table step_parameters {
        key = { standard_metadata.egress_port : exact; }
        actions = { set_step; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        if (standard_metadata.egress_spec != DROP_PORT) {
            if (step_parameters.apply().hit && hdr.IP.isValid() && hdr.IP.diffserv & 3 != 0
                    && (standard_metadata.deq_timedelta > longest || (bit<32>)standard_metadata.enq_qdepth >= most)) {
                hdr.IP.diffserv = hdr.IP.diffserv | 3;
                marks.count((bit<32>)standard_metadata.egress_port);
            }
        }
    }
}
