// Writes the fair share of the output port into senders' control packets [ALS sec 3.1]: R_d >= R_f -> R_d = R_f and
// U = the port's utilisation. The controller sets both for each port every second. This runs in egress, so that every copy
// of a multicast packet gets the values of its own port, as late as possible.

control FairRate(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    UdpChecksum() checksum_of_rate;
    UdpChecksum() checksum_of_utilisation;
    bit<64> fair_rate_bps = 0;
    bit<32> port_utilisation_ppm = 0;

    action set_fair_rate(bit<64> rate_bps, bit<32> utilisation_ppm) {
        fair_rate_bps = rate_bps;
        port_utilisation_ppm = utilisation_ppm;
    }

    // A port that is not in the table changes nothing: its packets keep the values of earlier switches.
    table fair_rate {
        key = { standard_metadata.egress_port : exact; }
        actions = { set_fair_rate; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        if (hdr.alsf.isValid()) {
            if (fair_rate.apply().hit && hdr.alsf.desired_rate_bps >= fair_rate_bps) {
                // Over IPv4 senders use checksum 0 [ALS sec 3.5]; a packet with another checksum must survive our change.
                checksum_of_rate.apply(hdr, hdr.alsf.desired_rate_bps, fair_rate_bps);
                checksum_of_utilisation.apply(hdr, (bit<64>)hdr.alsf.utilisation_ppm, (bit<64>)port_utilisation_ppm);
                hdr.alsf.desired_rate_bps = fair_rate_bps;
                hdr.alsf.utilisation_ppm = port_utilisation_ppm;
            }
        }
    }
}
