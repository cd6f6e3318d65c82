// Believes a source address only at the ports where packets from its host come in; drops all others before they are counted, before IGMP
// reaches the controller, and before any table of the forwarding.
//
//   (source address, ingress port) --source_at--> believe | disbelieve: dropped, and counted by ingress port
//
// The controller fills the table from topology and addresses. Its own packets pass, and frames that are not IP, which Forward drops.

counter(PORTS, CounterType.packets_and_bytes) disbelieved;

control Sources(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    action believe() {
    }

    action disbelieve() {
        disbelieved.count((bit<32>)standard_metadata.ingress_port);
        mark_to_drop(standard_metadata);
    }

    table source_at {
        key = {
            hdr.IP.src_address : exact;
            standard_metadata.ingress_port : exact;
        }
        actions = { believe; disbelieve; }
        size = 65536;
        default_action = disbelieve();
    }

    apply {
        if (hdr.IP.isValid() && standard_metadata.ingress_port != CPU_PORT) {
            source_at.apply();
        }
    }
}
