// Replaces step.p4 where STEP is not defined: marks nothing.

control Step(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
    }
}
