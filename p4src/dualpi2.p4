// DualPI2 per output port (RFC 9332, DualQ Coupled AQM): scalable transports, which say so by ECT(1), have a queue of their own, kept short by
// marks; pi2.p4 keeps the other packets' queue at its target and couples both.
//
//   ingress: DualArrival    ECT(1), CE --> priority 1: the low-latency queue (L); all others: priority 0, the Classic queue (C)
//   egress:  DualDeparture  L: CE <- sojourn > threshold, and a packet waits behind it (the step of section 2.4)
//
// pi2.p4 measures the delay in C alone; it drops C's packets by p'^2 and marks L's by 2 p', whatever waits in L. So a packet of L is marked
// with max(step, 2 p') (appendix A.1). The switch's scheduler decides which queue sends (`--port-time-shift`; strict priority without it).

const bit<3> LOW_LATENCY = 1;

control DualArrival(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    action classify() {
        standard_metadata.priority = LOW_LATENCY;
    }

    table dualpi2_ports {
        key = { standard_metadata.egress_spec : exact; }
        actions = { classify; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.diffserv & 1 == 1) {
            dualpi2_ports.apply();
        }
    }
}

control DualDeparture(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    counter(PORTS, CounterType.packets_and_bytes) marks;
    bit<32> longest = 0;  // microseconds

    action set_step(bit<32> threshold_us) {
        longest = threshold_us;
    }

    table dualpi2_parameters {
        key = { standard_metadata.egress_port : exact; }
        actions = { set_step; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        if (standard_metadata.priority == LOW_LATENCY && dualpi2_parameters.apply().hit && hdr.ipv4.isValid()
                && standard_metadata.deq_timedelta > longest && standard_metadata.deq_qdepth > 0 && hdr.ipv4.diffserv & 3 != 3) {
            hdr.ipv4.diffserv = hdr.ipv4.diffserv | 3;
            marks.count((bit<32>)standard_metadata.egress_port);
        }
    }
}
