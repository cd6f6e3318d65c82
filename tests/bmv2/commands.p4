#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t { bit<4> v; bit<4> ihl; bit<8> tos; bit<16> len; bit<16> id; bit<3> fl; bit<13> off; bit<8> ttl; bit<8> proto; bit<16> sum; bit<32> src; bit<32> dst; }
struct headers { ethernet_t eth; ipv4_t ip; }
struct learn_t { bit<48> mac; bit<9> port; }
struct metadata { bit<14> group; learn_t learn; bit<16> h; }
parser P(packet_in p, out headers hdr, inout metadata m, inout standard_metadata_t s) {
  value_set<bit<16>>(4) pvs;
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; pvs: ip; default: accept; } }
  state ip { p.extract(hdr.ip); transition accept; }
}
control V(inout headers h, inout metadata m) { apply {} }
control C(inout headers h, inout metadata m) { apply {} }
control I(inout headers hdr, inout metadata m, inout standard_metadata_t s) {
  counter(8, CounterType.packets_and_bytes) cnt;
  direct_counter(CounterType.packets_and_bytes) dcnt;
  meter(4, MeterType.packets) met;
  direct_meter<bit<2>>(MeterType.bytes) dmet;
  register<bit<32>>(16) reg;
  register<bit<64>>(2) wide;
  bit<2> col;
  action drop() { mark_to_drop(s); }
  action fwd(bit<9> port) { s.egress_spec = port; dmet.read(col);}
  action mac_fwd(bit<48> dst, bit<9> port) { hdr.eth.dst = dst; s.egress_spec = port; }
  action bcast(bit<16> g) { s.mcast_grp = g; }
  action fwd2(bit<9> port) { s.egress_spec = port; }
  action learn() { m.learn.mac = hdr.eth.src; m.learn.port = s.ingress_port; digest(1, m.learn); }
  table dmac { key = { hdr.eth.dst: exact; } actions = { fwd; bcast; drop; NoAction; } counters = dcnt; meters = dmet; size = 1024; default_action = drop; support_timeout = true; }
  table smac { key = { hdr.eth.src: exact; } actions = { learn; NoAction; } default_action = learn; size = 256; }
  table lpm { key = { hdr.ip.dst: lpm; } actions = { mac_fwd; drop; } size=20000; }
  table acl { key = { hdr.ip.src: ternary; hdr.ip.proto: exact; hdr.ip.len: range; hdr.ip.isValid(): exact;} actions = { drop; NoAction; fwd2;} const default_action = NoAction(); }
  action_selector(HashAlgorithm.crc16, 64, 14) sel;
  action_profile(16) prof;
  table ecmp { key = { hdr.ip.dst: lpm; hdr.ip.src: selector; hdr.ip.proto: selector; } actions = { fwd2; NoAction; } implementation = sel; }
  table ind { key = { hdr.ip.tos: exact; } actions = { fwd2; NoAction; } implementation = prof; }
  table consts { key = { hdr.ip.ttl: exact; } actions = { drop; NoAction; } const entries = { 0: drop(); 1: NoAction(); } default_action = NoAction; }
  apply {
    cnt.count((bit<32>)s.ingress_port); met.execute_meter((bit<32>)0, col);
    hash(m.h, HashAlgorithm.crc32_custom, (bit<16>)0, { hdr.eth.src, hdr.eth.dst }, (bit<32>)65536);
    reg.write(0, (bit<32>)m.h);
    smac.apply(); dmac.apply();
    if (hdr.ip.isValid()) { lpm.apply(); acl.apply(); ecmp.apply(); ind.apply(); consts.apply(); }
  }
}
control E(inout headers hdr, inout metadata m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in headers h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
