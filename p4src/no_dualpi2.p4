// Replaces dualpi2.p4 where DUALPI2 is not defined: all packets wait in one queue.

control DualArrival(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
    }
}

control DualDeparture(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
    }
}
