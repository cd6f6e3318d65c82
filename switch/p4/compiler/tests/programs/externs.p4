// Every extern object and function of v1model, signed and saturating arithmetic, loops.
#include <core.p4>
#include <v1model.p4>

header sample_t {
    bit<32> key;
    int<16> delta;
    bit<16> sum;
}

struct headers_t {
    sample_t sample;
}

struct metadata_t {
    @field_list(1)
    bit<32> kept;
    bit<2>  colour;
    bit<16> slot;
}

struct event_t {
    bit<32> key;
    bit<9>  port;
}

parser SampleParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.sample);
        transition accept;
    }
}

control SampleVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.sample.isValid(), { hdr.sample.key, 16w7 }, hdr.sample.sum, HashAlgorithm.csum16);
    }
}

control SampleIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<32>>(64) totals;
    counter(8, CounterType.packets_and_bytes) packets;
    meter(4, MeterType.bytes) rate;
    direct_counter(CounterType.packets) hits;
    direct_meter<bit<2>>(MeterType.packets) policer;
    action_selector(HashAlgorithm.crc16, 128, 14) selector;

    action account(bit<32> weight) {
        bit<32> total;
        policer.read(meta.colour);
        totals.read(total, (bit<32>)meta.slot & 63);
        for (bit<8> i = 0; i < 3; i = i + 1) {
            total = total + weight;
        }
        if (total > 1000) {
            total = total - 1000;
        } else {
            total = total |+| 5;
        }
        totals.write((bit<32>)meta.slot & 63, total);
    }

    action send(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    table accounts {
        key = { hdr.sample.key : ternary; }
        actions = { account; NoAction; }
        counters = hits;
        meters = policer;
        default_action = NoAction();
    }

    table spread {
        key = { hdr.sample.sum : exact; hdr.sample.key : selector; }
        actions = { send; }
        implementation = selector;
    }

    apply {
        hash(meta.slot, HashAlgorithm.crc16, 16w0, { hdr.sample.key, standard_metadata.ingress_port }, 16w64);
        packets.count((bit<32>)standard_metadata.ingress_port);
        rate.execute_meter(0, meta.colour);
        hdr.sample.delta = -hdr.sample.delta >> 2;
        accounts.apply();
        spread.apply();
        bit<8> draw;
        random(draw, 0, 99);
        if (draw < 10) {
            digest<event_t>(0, { hdr.sample.key, standard_metadata.ingress_port });
        }
        meta.kept = hdr.sample.key;
        clone_preserving_field_list(CloneType.I2E, 5, 1);
        truncate(64);
        log_msg("key {} of {}", { hdr.sample.key, draw });
        assert(hdr.sample.isValid());
    }
}

control SampleEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.instance_type == 1) {
            recirculate_preserving_field_list(1);
        }
    }
}

control SampleUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum_with_payload(hdr.sample.isValid(), { hdr.sample.key }, hdr.sample.sum, HashAlgorithm.csum16);
    }
}

control SampleDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.sample);
    }
}

V1Switch(SampleParser(), SampleVerify(), SampleIngress(), SampleEgress(), SampleUpdate(), SampleDeparser()) main;
