// Lab 4: the fair share of the output port, written into senders' control packets [ALS sec 3.1].
//
// The controller fills the table: for each output port its fair rate R_f in bit/s and its utilisation U in parts per million.

control FairRate(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    bit<64> fair_rate_bps = 0;
    bit<32> port_utilisation_ppm = 0;

    action set_fair_rate(bit<64> rate_bps, bit<32> utilisation_ppm) {
        // BEGIN SOLUTION
        fair_rate_bps = rate_bps;
        port_utilisation_ppm = utilisation_ppm;
        // SKELETON
        // // TODO 1: remember both values for the apply block below.
        // END SOLUTION
    }

    table fair_rate {
        key = { standard_metadata.egress_port : exact; }
        actions = { set_fair_rate; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        if (hdr.alsf.isValid()) {
            // BEGIN SOLUTION
            if (fair_rate.apply().hit && hdr.alsf.desired_rate_bps >= fair_rate_bps) {
                hdr.alsf.desired_rate_bps = fair_rate_bps;
                hdr.alsf.utilisation_ppm = port_utilisation_ppm;
                // Senders use checksum 0 [ALS sec 3.5]; a packet with another checksum must survive our change.
                hdr.udp.checksum = 0;
            }
            // SKELETON
            // fair_rate.apply();
            // // TODO 2: when the port has a fair rate and the packet asks for as much or more, write both values into hdr.alsf
            // //         (headers.p4 has its fields). A packet that an earlier switch has limited to less stays as it is.
            // // TODO 3: the UDP checksum was over the old bytes. What does 0 mean there (RFC 768)?
            // END SOLUTION
        }
    }
}
