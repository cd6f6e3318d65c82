// What Fairlane asks of BMv2 over Thrift: the services and methods of BMv2's own interface that set queues and read registers,
// which neither its command line nor P4Runtime offers. Names, numbers and types are BMv2's.

exception InvalidRegisterOperation {
  1: i32 code
}

service Standard {
  i64 bm_register_read(1: i32 cxt_id, 2: string register_array_name, 3: i32 idx) throws (1: InvalidRegisterOperation ouch)
  list<i64> bm_register_read_all(1: i32 cxt_id, 2: string register_array_name) throws (1: InvalidRegisterOperation ouch)
  void bm_register_write(1: i32 cxt_id, 2: string register_array_name, 3: i32 index, 4: i64 value)
    throws (1: InvalidRegisterOperation ouch)
}

service SimpleSwitch {
  i32 set_egress_queue_depth(1: i32 port_num, 2: i32 depth_pkts)
  i32 set_egress_queue_rate(1: i32 port_num, 2: i64 rate_pps)
}
