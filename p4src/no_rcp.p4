// Replaces rcp.p4 where RCP is not defined: no rate headers.

control RcpArrival(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
    }
}

control RcpDeparture(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
    }
}
