// Replaces sources.p4 where SOURCE_GUARD is not defined: believes every source address.

control Sources(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
    }
}
