// Approximate fair dropping per output port (Pan et al. 2003): each arrival meets a drop probability of its own flow's rate.
//
//   ingress: AfdArrival    flow's bytes, share, queue --> admit | mark | drop    before the packet takes a buffer or link time
//   egress:  AfdDeparture  deq_qdepth --> queue
//
//   m       bytes of the flow that came in the last whole interval, or in this one, whichever is more
//   drop    with probability 1 - share / m, where m > share:  R m > share, R uniform in [0, 1): no division
//   share <- share + alpha (queue_before - target) - beta (queue - target)    each AFD_UPDATE, at an arrival
//
// A flow is a pair of addresses, as a connection is elsewhere. Flows have slots by a hash of the pair and the port; two flows in one slot count as
// one. Everything is an integer: bytes, packets, and R x 2^-32.

#define AFD_SLOTS 8192
#define AFD_INTERVAL_BITS 17  // of microseconds: 131 ms
#define AFD_UPDATE_BITS 14    // 16 ms

const bit<64> AFD_LEAST = 2000;  // bytes: a share never falls below

// Per slot: bytes of the interval `afd_epoch`, and of the one before.
register<bit<32>>(AFD_SLOTS) afd_bytes;
register<bit<32>>(AFD_SLOTS) afd_bytes_before;
register<bit<32>>(AFD_SLOTS) afd_epoch;

// Per port. 0: no share yet.
register<bit<32>>(PORTS) afd_share;
register<bit<32>>(PORTS) afd_updated;  // number of the update
register<bit<32>>(PORTS) afd_queue_before;
// Waiting packets as the next arrival will find them; departures correct the count after drops at a full queue.
register<bit<32>>(PORTS) afd_queue;

control AfdArrival(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    counter(PORTS, CounterType.packets_and_bytes) drops;
    counter(PORTS, CounterType.packets_and_bytes) marks;  // instead of drops
    bit<64> target = 0;
    bit<64> alpha = 0;
    bit<64> beta = 0;
    bit<64> most = 0;
    bool ecn = false;

    action set_afd(bit<32> target_packets, bit<32> alpha_bytes, bit<32> beta_bytes, bit<32> most_bytes, bit<1> marking) {
        target = (bit<64>)target_packets;
        alpha = (bit<64>)alpha_bytes;
        beta = (bit<64>)beta_bytes;
        most = (bit<64>)most_bytes;
        ecn = marking == 1;
    }

    table afd_parameters {
        key = { standard_metadata.egress_spec : exact; }
        actions = { set_afd; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        bit<32> index = (bit<32>)standard_metadata.egress_spec;
        if (afd_parameters.apply().hit) {
            bit<48> now = standard_metadata.ingress_global_timestamp;

            // The flow's bytes, with this packet.
            bit<32> slot;
            bit<32> epoch;
            bit<32> bytes;
            bit<32> bytes_before;
            bit<32> now_epoch = (bit<32>)(now >> AFD_INTERVAL_BITS);
            hash(slot, HashAlgorithm.crc32, 32w0, { hdr.ipv4.src_address, hdr.ipv4.dst_address, standard_metadata.egress_spec }, (bit<32>)AFD_SLOTS);
            afd_epoch.read(epoch, slot);
            afd_bytes.read(bytes, slot);
            afd_bytes_before.read(bytes_before, slot);
            if (epoch != now_epoch) {
                bytes_before = 0;
                if (epoch + 1 == now_epoch) {
                    bytes_before = bytes;
                }
                bytes = 0;
                afd_epoch.write(slot, now_epoch);
                afd_bytes_before.write(slot, bytes_before);
            }
            bytes = bytes + standard_metadata.packet_length;
            afd_bytes.write(slot, bytes);
            bit<64> m = (bit<64>)bytes;
            if (bytes_before > bytes) {
                m = (bit<64>)bytes_before;
            }

            // The share.
            bit<32> stored;
            bit<32> queue;
            bit<32> updated;
            bit<32> update = (bit<32>)(now >> AFD_UPDATE_BITS);
            afd_share.read(stored, index);
            afd_queue.read(queue, index);
            afd_updated.read(updated, index);
            bit<64> share = (bit<64>)stored;
            if (share == 0) {
                share = most;
            }
            if (updated != update) {
                bit<32> before;
                afd_queue_before.read(before, index);
                share = (share + alpha * (bit<64>)before + beta * target) |-| (beta * (bit<64>)queue + alpha * target);
                if (share < AFD_LEAST) {
                    share = AFD_LEAST;
                }
                if (share > most) {
                    share = most;
                }
                afd_share.write(index, (bit<32>)share);
                afd_updated.write(index, update);
                afd_queue_before.write(index, queue);
            }

            bit<32> draw;
            random(draw, 0, 0xFFFFFFFF);
            if ((bit<64>)draw * m >> 32 > share) {
                if (ecn && hdr.ipv4.diffserv & 3 != 0) {
                    hdr.ipv4.diffserv = hdr.ipv4.diffserv | 3;
                    marks.count(index);
                    afd_queue.write(index, queue + 1);
                } else {
                    mark_to_drop(standard_metadata);
                    drops.count(index);
                }
            } else {
                afd_queue.write(index, queue + 1);
            }
        }
    }
}

control AfdDeparture(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    action watch() {
    }

    table afd_ports {
        key = { standard_metadata.egress_port : exact; }
        actions = { watch; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        if (afd_ports.apply().hit) {
            afd_queue.write((bit<32>)standard_metadata.egress_port, (bit<32>)standard_metadata.deq_qdepth);
        }
    }
}
