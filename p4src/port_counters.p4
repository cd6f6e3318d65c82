// Bytes and packets sent by each port, for the controller's measure of utilisation.

control PortCounters(inout standard_metadata_t standard_metadata) {
    counter(PORTS, CounterType.packets_and_bytes) transmitted;

    apply {
        transmitted.count((bit<32>)standard_metadata.egress_port);
    }
}
