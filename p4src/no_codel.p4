// Replaces codel.p4 where CODEL is not defined: drops nothing.

control Codel(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
    }
}
