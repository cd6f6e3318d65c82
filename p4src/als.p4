// The adaptive load service (Sisalem and Schulzrinne) with random early detection, for v1model.

#include <core.p4>
#include <v1model.p4>

#include "constants.p4"
// Schemes, each of a folder in schemes/: a run writes two files of its own, and compiles with CHOSEN and their folder (-I).
#ifdef CHOSEN
#include <chosen_headers.p4>
#else
#include "chosen_headers.p4"
#endif
#include "headers.p4"
#include "parser.p4"
#include "checksum.p4"
#include "forward.p4"
#ifdef CONNECTION_SKETCH
#include "connection_sketch.p4"
#else
#include "connections.p4"
#endif
#ifdef CHOSEN
#include <chosen.p4>
#else
#include "chosen.p4"
#endif
#include "port_counters.p4"

control AlsIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    ENTRY_CONTROLS
    Forward() forward;
    Connections() connections;
    OFFERED_CONTROLS
    ARRIVAL_CONTROLS

    apply {
        ENTRY
        if (standard_metadata.egress_spec != DROP_PORT) {
            forward.apply(hdr, meta, standard_metadata);
        }
        // The controller's own packets are not a connection, and no scheme may drop them.
        if (standard_metadata.egress_spec != DROP_PORT && standard_metadata.egress_spec != CPU_PORT
                && standard_metadata.ingress_port != CPU_PORT && hdr.IP.isValid()) {
            // Before schemes: a packet that one drops still counts for its connection.
            connections.apply(hdr, standard_metadata);
            if (standard_metadata.mcast_grp == 0) {
                // All that wants the link counts, dropped or not.
                OFFERED
                // A packet that was dropped there has no output port for these.
                ARRIVAL
            }
        }
    }
}

control AlsEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    ReplicaConnections() connections;
    AFTER_CONTROLS
    COPY_CONTROLS
    DEPARTURE_CONTROLS
    SENT_CONTROLS
    PortCounters() ports;

    apply {
        if (standard_metadata.egress_port == CPU_PORT) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard_metadata.ingress_port;
            hdr.packet_in.pad = 0;
        } else {
            // Before AFTER, because that ends the idle time that the copy found.
            if (standard_metadata.instance_type == REPLICATION) {
                if (standard_metadata.egress_port == standard_metadata.ingress_port) {
                    // Only for a group without members, on a link to a multicast router; the tables cover other cases.
                    mark_to_drop(standard_metadata);
                } else {
                    connections.apply(hdr, standard_metadata);
                    COPY
                }
            }
            DEPARTURE
            AFTER
            if (standard_metadata.egress_spec != DROP_PORT) {
                // What a queue management drops takes no time of the link.
                SENT
                ports.apply(standard_metadata);
            }
        }
    }
}

V1Switch(AlsParser(), AlsVerifyChecksum(), AlsIngress(), AlsEgress(), AlsComputeChecksum(), AlsDeparser()) main;
