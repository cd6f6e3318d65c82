// Replaces pi2.p4 where PI2 is not defined: drops nothing.

control Pi2Arrival(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
    }
}

control Pi2Departure(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
    }
}
