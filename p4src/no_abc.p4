// Replaces abc.p4 where ABC is not defined: marks nothing.

control Abc(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
    }
}
