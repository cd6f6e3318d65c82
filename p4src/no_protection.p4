// In place of protection.p4 where FLOW_PROTECTION is not defined: nobody is held.

control Protection(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
    }
}

control ReplicaProtection(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
    }
}
