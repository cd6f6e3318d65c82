// A chain of 65 conditional expressions: deeper than readers of JSON allow, so the compiler takes it apart.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> x; }
struct headers_t { h_t h; }
struct meta_t { }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 2;
        hdr.h.x =
            hdr.h.x == 0 ? 8w1 :
            hdr.h.x == 1 ? 8w4 :
            hdr.h.x == 2 ? 8w7 :
            hdr.h.x == 3 ? 8w10 :
            hdr.h.x == 4 ? 8w13 :
            hdr.h.x == 5 ? 8w16 :
            hdr.h.x == 6 ? 8w19 :
            hdr.h.x == 7 ? 8w22 :
            hdr.h.x == 8 ? 8w25 :
            hdr.h.x == 9 ? 8w28 :
            hdr.h.x == 10 ? 8w31 :
            hdr.h.x == 11 ? 8w34 :
            hdr.h.x == 12 ? 8w37 :
            hdr.h.x == 13 ? 8w40 :
            hdr.h.x == 14 ? 8w43 :
            hdr.h.x == 15 ? 8w46 :
            hdr.h.x == 16 ? 8w49 :
            hdr.h.x == 17 ? 8w52 :
            hdr.h.x == 18 ? 8w55 :
            hdr.h.x == 19 ? 8w58 :
            hdr.h.x == 20 ? 8w61 :
            hdr.h.x == 21 ? 8w64 :
            hdr.h.x == 22 ? 8w67 :
            hdr.h.x == 23 ? 8w70 :
            hdr.h.x == 24 ? 8w73 :
            hdr.h.x == 25 ? 8w76 :
            hdr.h.x == 26 ? 8w79 :
            hdr.h.x == 27 ? 8w82 :
            hdr.h.x == 28 ? 8w85 :
            hdr.h.x == 29 ? 8w88 :
            hdr.h.x == 30 ? 8w91 :
            hdr.h.x == 31 ? 8w94 :
            hdr.h.x == 32 ? 8w97 :
            hdr.h.x == 33 ? 8w100 :
            hdr.h.x == 34 ? 8w103 :
            hdr.h.x == 35 ? 8w106 :
            hdr.h.x == 36 ? 8w109 :
            hdr.h.x == 37 ? 8w112 :
            hdr.h.x == 38 ? 8w115 :
            hdr.h.x == 39 ? 8w118 :
            hdr.h.x == 40 ? 8w121 :
            hdr.h.x == 41 ? 8w124 :
            hdr.h.x == 42 ? 8w127 :
            hdr.h.x == 43 ? 8w130 :
            hdr.h.x == 44 ? 8w133 :
            hdr.h.x == 45 ? 8w136 :
            hdr.h.x == 46 ? 8w139 :
            hdr.h.x == 47 ? 8w142 :
            hdr.h.x == 48 ? 8w145 :
            hdr.h.x == 49 ? 8w148 :
            hdr.h.x == 50 ? 8w151 :
            hdr.h.x == 51 ? 8w154 :
            hdr.h.x == 52 ? 8w157 :
            hdr.h.x == 53 ? 8w160 :
            hdr.h.x == 54 ? 8w163 :
            hdr.h.x == 55 ? 8w166 :
            hdr.h.x == 56 ? 8w169 :
            hdr.h.x == 57 ? 8w172 :
            hdr.h.x == 58 ? 8w175 :
            hdr.h.x == 59 ? 8w178 :
            hdr.h.x == 60 ? 8w181 :
            hdr.h.x == 61 ? 8w184 :
            hdr.h.x == 62 ? 8w187 :
            hdr.h.x == 63 ? 8w190 :
            hdr.h.x == 64 ? 8w193 :
            0xff;
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }

control Update(inout headers_t hdr, inout meta_t meta) { apply { } }

control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Update(), Deparse()) main;
