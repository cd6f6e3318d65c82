// Replaces xcp.p4 where XCP is not defined: no congestion headers.

control XcpArrival(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
    }
}

control XcpDeparture(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
    }
}
