// Replaces pie.p4 where PIE is not defined: drops nothing.

control PieArrival(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
    }
}

control PieDeparture(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
    }
}
