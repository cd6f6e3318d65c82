#include <core.p4>
#define X(a) a \
   + 1
const   bit<16>  A  = 0x800;
const bit<8>   TYPE_LONG = 1;
header eth_t
{
  bit<48>   dst;  // to
  bit<48> src;   // from
  bit<16>  type; /* kind */
}

typedef bit <9> port_t;


enum bit<8> K { A=1,B = 2 }
error { Foo, Bar }
control C (inout headers hdr,
   inout metadata meta)( bit<8> x ) {
   /* a
    * b
      */
   action  drop( ) { mark_to_drop( standard_metadata ) ; }
   action b(bit<9> p, bit<48> q) { x = p; y = q; }
   register < bit<32> > ( 10 ) r;
   table t { key = { hdr.a : exact; hdr.ipv4.dst: lpm @name("x y") ; }
      actions = { drop; b; NoAction; } size = 1024;
      const entries = { (1,2) : drop(); (0x1 &&& 0xF, 2..3):b(1,2); }
      default_action=drop(); }
   apply
   {
      if(x==1&&y<2||!z) { t.apply(); } else if (x[7:0]>>2 == -1) { a=b?c:-d; }
      else
      {
        x = (bit<8>) y - (bit<8>)-z + foo<bit<8>, a>(b , c);
      }
      if (a) b = 1; else c = 2;
      if (a)
        if (b)
           c = 1;
        else
           d = 2;
#ifdef Q
      if (q) {
#else
      if (r) {
#endif
         hash(meta.ecmp_select, HashAlgorithm.crc16, (bit<1>)0, { hdr.ipv4.srcAddr, hdr.ipv4.dstAddr, hdr.ipv4.protocol, hdr.tcp.srcPort, hdr.tcp.dstPort }, (bit<16>)2);
      }
      MACRO
      MACRO2(a, b)
      switch (t.apply().action_run) { drop: { return; } default : { } }
      @pragma foo bar
      return ;
   } }
parser P(packet_in p) { state start { p.extract( hdr.e ); transition select ( hdr.e.type,x ) { (0x800,_): ipv4; default:accept; } } }
V1Switch(MyParser(), MyVerifyChecksum(), MyIngress(), MyEgress(), MyComputeChecksum(), MyDeparser()
) main;
