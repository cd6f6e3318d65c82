// Replaces protection.p4 where FLOW_PROTECTION is not defined: limits no connection.

control Protection(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
    }
}

control ReplicaProtection(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
    }
}
