// What Fairlane asks of BMv2 over Thrift: those services and methods of BMv2's own interface that runs and packet tests use. Names of services and
// methods, numbers of fields and types are BMv2's.

exception InvalidTableOperation {
  1: i32 code
}

exception InvalidCounterOperation {
  1: i32 code
}

exception InvalidMeterOperation {
  1: i32 code
}

exception InvalidRegisterOperation {
  1: i32 code
}

exception InvalidMcOperation {
  1: i32 code
}

exception InvalidMirroringOperation {
  1: i32 code
}

struct MatchExact {
  1: binary key
}

struct MatchLpm {
  1: binary key
  2: i32 prefix_length
}

struct MatchTernary {
  1: binary key
  2: binary mask
}

struct MatchValid {
  1: bool key
}

struct MatchRange {
  1: binary low
  2: binary high
}

// type: 0 exact, 1 LPM, 2 ternary, 3 valid, 4 range
struct MatchParam {
  1: i32 type
  2: optional MatchExact exact
  3: optional MatchLpm lpm
  4: optional MatchTernary ternary
  5: optional MatchValid valid
  6: optional MatchRange range
}

struct AddEntryOptions {
  1: optional i32 priority
}

struct CounterValue {
  1: i64 bytes
  2: i64 packets
}

struct MeterRate {
  1: double units_per_micros
  2: i32 burst_size
}

struct Info {
  1: i64 device_id
}

struct MirroringSession {
  1: optional i32 port
  2: optional i32 mgid
}

service Standard {
  i32 bm_mt_add_entry(1: i32 cxt_id, 2: string table, 3: list<MatchParam> key, 4: string action, 5: list<binary> data, 6: AddEntryOptions options)
    throws (1: InvalidTableOperation ouch)
  i32 bm_mt_indirect_add_entry(1: i32 cxt_id, 2: string table, 3: list<MatchParam> key, 4: i32 member, 5: AddEntryOptions options)
    throws (1: InvalidTableOperation ouch)
  i32 bm_mt_indirect_ws_add_entry(1: i32 cxt_id, 2: string table, 3: list<MatchParam> key, 4: i32 group, 5: AddEntryOptions options)
    throws (1: InvalidTableOperation ouch)
  void bm_mt_set_default_action(1: i32 cxt_id, 2: string table, 3: string action, 4: list<binary> data) throws (1: InvalidTableOperation ouch)
  void bm_mt_indirect_set_default_member(1: i32 cxt_id, 2: string table, 3: i32 member) throws (1: InvalidTableOperation ouch)
  void bm_mt_clear_entries(1: i32 cxt_id, 2: string table, 3: bool reset_default_entry) throws (1: InvalidTableOperation ouch)
  CounterValue bm_mt_read_counter(1: i32 cxt_id, 2: string table, 3: i32 entry) throws (1: InvalidTableOperation ouch)
  i32 bm_mt_act_prof_add_member(1: i32 cxt_id, 2: string profile, 3: string action, 4: list<binary> data) throws (1: InvalidTableOperation ouch)
  i32 bm_mt_act_prof_create_group(1: i32 cxt_id, 2: string profile) throws (1: InvalidTableOperation ouch)
  void bm_mt_act_prof_add_member_to_group(1: i32 cxt_id, 2: string profile, 3: i32 member, 4: i32 group) throws (1: InvalidTableOperation ouch)
  CounterValue bm_counter_read(1: i32 cxt_id, 2: string counter, 3: i32 index) throws (1: InvalidCounterOperation ouch)
  void bm_counter_write(1: i32 cxt_id, 2: string counter, 3: i32 index, 4: CounterValue value) throws (1: InvalidCounterOperation ouch)
  void bm_meter_array_set_rates(1: i32 cxt_id, 2: string meter, 3: list<MeterRate> rates) throws (1: InvalidMeterOperation ouch)
  void bm_meter_set_rates(1: i32 cxt_id, 2: string meter, 3: i32 index, 4: list<MeterRate> rates) throws (1: InvalidMeterOperation ouch)
  list<MeterRate> bm_meter_get_rates(1: i32 cxt_id, 2: string meter, 3: i32 index) throws (1: InvalidMeterOperation ouch)
  i64 bm_register_read(1: i32 cxt_id, 2: string register_array_name, 3: i32 idx) throws (1: InvalidRegisterOperation ouch)
  list<i64> bm_register_read_all(1: i32 cxt_id, 2: string register_array_name) throws (1: InvalidRegisterOperation ouch)
  void bm_register_write(1: i32 cxt_id, 2: string register_array_name, 3: i32 index, 4: i64 value)
    throws (1: InvalidRegisterOperation ouch)
  void bm_register_reset(1: i32 cxt_id, 2: string register_array_name) throws (1: InvalidRegisterOperation ouch)
  Info bm_mgmt_get_info()
  void bm_reset_state()
}

service SimplePreLag {
  i32 bm_mc_mgrp_create(1: i32 cxt_id, 2: i32 mgrp) throws (1: InvalidMcOperation ouch)
  i32 bm_mc_node_create(1: i32 cxt_id, 2: i32 rid, 3: string port_map, 4: string lag_map) throws (1: InvalidMcOperation ouch)
  void bm_mc_node_update(1: i32 cxt_id, 2: i32 l1_handle, 3: string port_map, 4: string lag_map) throws (1: InvalidMcOperation ouch)
  void bm_mc_node_associate(1: i32 cxt_id, 2: i32 mgrp_handle, 3: i32 l1_handle) throws (1: InvalidMcOperation ouch)
}

service SimpleSwitch {
  void mirroring_session_add(1: i32 mirror_id, 2: MirroringSession config) throws (1: InvalidMirroringOperation ouch)
  MirroringSession mirroring_session_get(1: i32 mirror_id) throws (1: InvalidMirroringOperation ouch)
  void mirroring_session_delete(1: i32 mirror_id) throws (1: InvalidMirroringOperation ouch)
  i32 set_all_egress_queue_depths(1: i32 depth_pkts)
  i32 set_egress_queue_depth(1: i32 port_num, 2: i32 depth_pkts)
  i32 set_egress_queue_rate(1: i32 port_num, 2: i64 rate_pps)
}
