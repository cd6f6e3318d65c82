// The adaptive load service (Sisalem and Schulzrinne) with random early detection, for v1model.

#include <core.p4>
#include <v1model.p4>

#include "constants.p4"
#include "headers.p4"
#include "parser.p4"
#include "checksum.p4"
#include "forward.p4"
#ifdef CONNECTION_SKETCH
#include "connection_sketch.p4"
#else
#include "connections.p4"
#endif
#ifdef FLOW_PROTECTION
#include "protection.p4"
#else
#include "no_protection.p4"
#endif
#include "red.p4"
#include "fair_rate.p4"
#include "port_counters.p4"

// instance_type of a copy that the multicast engine made.
const bit<32> REPLICATION = 5;

control AlsIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Forward() forward;
    Connections() connections;
    Protection() protection;
    RedArrival() red;

    apply {
        forward.apply(hdr, meta, standard_metadata);
        // What the controller says or hears is no connection, and RED must not lose it.
        if (standard_metadata.egress_spec != DROP_PORT && standard_metadata.egress_spec != CPU_PORT
                && standard_metadata.ingress_port != CPU_PORT && hdr.ipv4.isValid()) {
            // A connection is seen even in the packet that RED then drops.
            connections.apply(hdr, standard_metadata);
            if (standard_metadata.mcast_grp == 0) {
                protection.apply(hdr, standard_metadata);
                // What protection has dropped has no port that RED knows.
                red.apply(standard_metadata);
            }
        }
    }
}

control AlsEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    ReplicaConnections() connections;
    ReplicaProtection() protection;
    RedDeparture() departure;
    RedReplica() replica;
    FairRate() fair_rate;
    PortCounters() ports;

    apply {
        if (standard_metadata.egress_port == CPU_PORT) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard_metadata.ingress_port;
            hdr.packet_in.pad = 0;
        } else {
            // Before the departure is noted, since that ends the idle time which the copy found.
            if (standard_metadata.instance_type == REPLICATION) {
                if (standard_metadata.egress_port == standard_metadata.ingress_port) {
                    // Only of a group without members, on a link to a multicast router: for others the tables see to it.
                    mark_to_drop(standard_metadata);
                } else {
                    connections.apply(hdr, standard_metadata);
                    replica.apply(standard_metadata);
                    protection.apply(hdr, standard_metadata);
                }
            }
            departure.apply(standard_metadata);
            if (standard_metadata.egress_spec != DROP_PORT) {
                fair_rate.apply(hdr, standard_metadata);
                ports.apply(standard_metadata);
            }
        }
    }
}

V1Switch(AlsParser(), AlsVerifyChecksum(), AlsIngress(), AlsEgress(), AlsComputeChecksum(), AlsDeparser()) main;
