/* The Portable Switch Architecture (PSA), as BMv2's psa_switch runs it.
 *
 * Written from the public specification of PSA, version 1.2. The interface (names, types and the order of parameters) is that
 * of the architecture; the widths are those of psa_switch. A packet goes through
 *
 *   ingress parser -> ingress -> ingress deparser -> replication -> queues -> egress parser -> egress -> egress deparser
 *
 * and is bytes between the deparser of ingress and the parser of egress. */

#ifndef _PORTABLE_SWITCH_ARCHITECTURE_P4_
#define _PORTABLE_SWITCH_ARCHITECTURE_P4_

#include <core.p4>

/* For each kind of number that a target may give another width (spec 4.1): the bits of this target; the type of the data plane,
 * which mixes with no other and which the control plane may translate; and both again as they stand in headers for the control
 * plane, whose widths every target has. */
typedef bit<32> PortIdUint_t;
typedef bit<32> MulticastGroupUint_t;
typedef bit<16> CloneSessionIdUint_t;
typedef bit<8> ClassOfServiceUint_t;
typedef bit<16> PacketLengthUint_t;
typedef bit<16> EgressInstanceUint_t;
typedef bit<64> TimestampUint_t;

@p4runtime_translation("p4.org/psa/v1/PortId_t", 32)
type PortIdUint_t PortId_t;
@p4runtime_translation("p4.org/psa/v1/MulticastGroup_t", 32)
type MulticastGroupUint_t MulticastGroup_t;
@p4runtime_translation("p4.org/psa/v1/CloneSessionId_t", 16)
type CloneSessionIdUint_t CloneSessionId_t;
@p4runtime_translation("p4.org/psa/v1/ClassOfService_t", 8)
type ClassOfServiceUint_t ClassOfService_t;
@p4runtime_translation("p4.org/psa/v1/PacketLength_t", 16)
type PacketLengthUint_t PacketLength_t;
@p4runtime_translation("p4.org/psa/v1/EgressInstance_t", 16)
type EgressInstanceUint_t EgressInstance_t;
@p4runtime_translation("p4.org/psa/v1/Timestamp_t", 64)
type TimestampUint_t Timestamp_t;

typedef error ParserError_t;

typedef bit<32> PortIdInHeaderUint_t;
typedef bit<32> MulticastGroupInHeaderUint_t;
typedef bit<16> CloneSessionIdInHeaderUint_t;
typedef bit<8> ClassOfServiceInHeaderUint_t;
typedef bit<16> PacketLengthInHeaderUint_t;
typedef bit<16> EgressInstanceInHeaderUint_t;
typedef bit<64> TimestampInHeaderUint_t;

@p4runtime_translation("p4.org/psa/v1/PortIdInHeader_t", 32)
type PortIdInHeaderUint_t PortIdInHeader_t;
@p4runtime_translation("p4.org/psa/v1/MulticastGroupInHeader_t", 32)
type MulticastGroupInHeaderUint_t MulticastGroupInHeader_t;
@p4runtime_translation("p4.org/psa/v1/CloneSessionIdInHeader_t", 16)
type CloneSessionIdInHeaderUint_t CloneSessionIdInHeader_t;
@p4runtime_translation("p4.org/psa/v1/ClassOfServiceInHeader_t", 8)
type ClassOfServiceInHeaderUint_t ClassOfServiceInHeader_t;
@p4runtime_translation("p4.org/psa/v1/PacketLengthInHeader_t", 16)
type PacketLengthInHeaderUint_t PacketLengthInHeader_t;
@p4runtime_translation("p4.org/psa/v1/EgressInstanceInHeader_t", 16)
type EgressInstanceInHeaderUint_t EgressInstanceInHeader_t;
@p4runtime_translation("p4.org/psa/v1/TimestampInHeader_t", 64)
type TimestampInHeaderUint_t TimestampInHeader_t;

/* Between the data plane's types and those of headers. */
PortId_t psa_PortId_header_to_int(in PortIdInHeader_t x) {
    return (PortId_t) (PortIdUint_t) (PortIdInHeaderUint_t) x;
}
MulticastGroup_t psa_MulticastGroup_header_to_int(in MulticastGroupInHeader_t x) {
    return (MulticastGroup_t) (MulticastGroupUint_t) (MulticastGroupInHeaderUint_t) x;
}
CloneSessionId_t psa_CloneSessionId_header_to_int(in CloneSessionIdInHeader_t x) {
    return (CloneSessionId_t) (CloneSessionIdUint_t) (CloneSessionIdInHeaderUint_t) x;
}
ClassOfService_t psa_ClassOfService_header_to_int(in ClassOfServiceInHeader_t x) {
    return (ClassOfService_t) (ClassOfServiceUint_t) (ClassOfServiceInHeaderUint_t) x;
}
PacketLength_t psa_PacketLength_header_to_int(in PacketLengthInHeader_t x) {
    return (PacketLength_t) (PacketLengthUint_t) (PacketLengthInHeaderUint_t) x;
}
EgressInstance_t psa_EgressInstance_header_to_int(in EgressInstanceInHeader_t x) {
    return (EgressInstance_t) (EgressInstanceUint_t) (EgressInstanceInHeaderUint_t) x;
}
Timestamp_t psa_Timestamp_header_to_int(in TimestampInHeader_t x) {
    return (Timestamp_t) (TimestampUint_t) (TimestampInHeaderUint_t) x;
}
PortIdInHeader_t psa_PortId_int_to_header(in PortId_t x) {
    return (PortIdInHeader_t) (PortIdInHeaderUint_t) (PortIdUint_t) x;
}
MulticastGroupInHeader_t psa_MulticastGroup_int_to_header(in MulticastGroup_t x) {
    return (MulticastGroupInHeader_t) (MulticastGroupInHeaderUint_t) (MulticastGroupUint_t) x;
}
CloneSessionIdInHeader_t psa_CloneSessionId_int_to_header(in CloneSessionId_t x) {
    return (CloneSessionIdInHeader_t) (CloneSessionIdInHeaderUint_t) (CloneSessionIdUint_t) x;
}
ClassOfServiceInHeader_t psa_ClassOfService_int_to_header(in ClassOfService_t x) {
    return (ClassOfServiceInHeader_t) (ClassOfServiceInHeaderUint_t) (ClassOfServiceUint_t) x;
}
PacketLengthInHeader_t psa_PacketLength_int_to_header(in PacketLength_t x) {
    return (PacketLengthInHeader_t) (PacketLengthInHeaderUint_t) (PacketLengthUint_t) x;
}
EgressInstanceInHeader_t psa_EgressInstance_int_to_header(in EgressInstance_t x) {
    return (EgressInstanceInHeader_t) (EgressInstanceInHeaderUint_t) (EgressInstanceUint_t) x;
}
TimestampInHeader_t psa_Timestamp_int_to_header(in Timestamp_t x) {
    return (TimestampInHeader_t) (TimestampInHeaderUint_t) (TimestampUint_t) x;
}

/* A packet for this egress port is recirculated. */
const PortId_t PSA_PORT_RECIRCULATE = (PortId_t) 0xfffffffa;
/* The port of the control plane: packet-in and packet-out. */
const PortId_t PSA_PORT_CPU = (PortId_t) 0xfffffffd;
/* The clone session that goes to the control plane. */
const CloneSessionId_t PSA_CLONE_SESSION_TO_CPU = (CloneSessionId_t) 0;

match_kind {
    /* The field lies between two bounds, both included. */
    range,
    /* The field goes into the hash by which an action selector picks a member; it is no part of the key. */
    selector,
    /* The field is equal, or the entry does not look at it. */
    optional
}

/* Values of the table property `psa_idle_timeout`. */
enum PSA_IdleTimeout_t {
    NO_TIMEOUT,
    NOTIFY_CONTROL
}

/* How a packet came to where it is. */
enum PSA_PacketPath_t {
    /* In ingress: from a port. */
    NORMAL,
    /* In egress: from ingress, to one port. */
    NORMAL_UNICAST,
    /* In egress: from ingress, a copy of a multicast group. */
    NORMAL_MULTICAST,
    /* In egress: cloned in ingress. */
    CLONE_I2E,
    /* In egress: cloned in egress. */
    CLONE_E2E,
    /* In ingress: resubmitted. */
    RESUBMIT,
    /* In ingress: recirculated. */
    RECIRCULATE
}

struct psa_ingress_parser_input_metadata_t {
    PortId_t ingress_port;
    PSA_PacketPath_t packet_path;
}

struct psa_egress_parser_input_metadata_t {
    PortId_t egress_port;
    PSA_PacketPath_t packet_path;
}

struct psa_ingress_input_metadata_t {
    PortId_t ingress_port;
    PSA_PacketPath_t packet_path;
    /* When ingress began, in microseconds since the switch started. */
    Timestamp_t ingress_timestamp;
    /* Why the ingress parser stopped, if it met an error. */
    ParserError_t parser_error;
}

/* What ingress decides; in brackets the value when ingress begins. */
struct psa_ingress_output_metadata_t {
    /* The class of service of the packet and its copies [0]. */
    ClassOfService_t class_of_service;
    /* Make a copy of the packet as it came in [false]. */
    bool clone;
    /* The clone session of that copy [not specified]. */
    CloneSessionId_t clone_session_id;
    /* Send the packet nowhere; a clone is made all the same [true]. */
    bool drop;
    /* Unless dropped: parse the packet, as it came in, and run ingress again [false]. */
    bool resubmit;
    /* Unless dropped or resubmitted: the multicast group, or 0 for egress_port [0]. */
    MulticastGroup_t multicast_group;
    /* Unless any of these: the port to send to [not specified]. */
    PortId_t egress_port;
}

struct psa_egress_input_metadata_t {
    ClassOfService_t class_of_service;
    PortId_t egress_port;
    PSA_PacketPath_t packet_path;
    /* Which replica of a multicast group this is. */
    EgressInstance_t instance;
    /* When egress began, in microseconds since the switch started. */
    Timestamp_t egress_timestamp;
    /* Why the egress parser stopped, if it met an error. */
    ParserError_t parser_error;
}

/* What the egress deparser may want to know. */
struct psa_egress_deparser_input_metadata_t {
    PortId_t egress_port;
}

/* What egress decides; in brackets the value when egress begins. */
struct psa_egress_output_metadata_t {
    /* Make a copy of the packet as it leaves the deparser [false]. */
    bool clone;
    /* The clone session of that copy [not specified]. */
    CloneSessionId_t clone_session_id;
    /* Send the packet nowhere; a clone is made all the same [false]. */
    bool drop;
}

/* In the ingress deparser: whether its `clone_i2e_meta`, `resubmit_meta`, `normal_meta` goes with a packet. */
@pure
extern bool psa_clone_i2e(in psa_ingress_output_metadata_t istd);
@pure
extern bool psa_resubmit(in psa_ingress_output_metadata_t istd);
@pure
extern bool psa_normal(in psa_ingress_output_metadata_t istd);

/* In the egress deparser: whether its `clone_e2e_meta`, `recirculate_meta` goes with a packet. */
@pure
extern bool psa_clone_e2e(in psa_egress_output_metadata_t istd);
@pure
extern bool psa_recirculate(in psa_egress_output_metadata_t istd, in psa_egress_deparser_input_metadata_t edstd);

/* Stops the switch with a message when `check` does not hold. */
extern void assert(in bool check);

/* As assert; for verification tools a premise rather than a claim. */
extern void assume(in bool check);

/* One copy to that port; whether a clone is made or the packet resubmitted stays as it is. */
@noWarn("unused")
action send_to_port(inout psa_ingress_output_metadata_t meta, in PortId_t egress_port) {
    meta.drop = false;
    meta.multicast_group = (MulticastGroup_t) 0;
    meta.egress_port = egress_port;
}

/* The copies of that multicast group; whether a clone is made or the packet resubmitted stays as it is. */
@noWarn("unused")
action multicast(inout psa_ingress_output_metadata_t meta, in MulticastGroup_t multicast_group) {
    meta.drop = false;
    meta.multicast_group = multicast_group;
}

/* No copy, no resubmission; whether a clone is made stays as it is. */
@noWarn("unused")
action ingress_drop(inout psa_ingress_output_metadata_t meta) {
    meta.drop = true;
}

/* No packet leaves; whether a clone is made stays as it is. */
@noWarn("unused")
action egress_drop(inout psa_egress_output_metadata_t meta) {
    meta.drop = true;
}

/* Replicates packets by what the control plane set up; the program has only to name it. */
extern PacketReplicationEngine {
    PacketReplicationEngine();
}

/* The queues; the program has only to name them. */
extern BufferingQueueingEngine {
    BufferingQueueingEngine();
}

enum PSA_HashAlgorithm_t {
    IDENTITY,
    CRC32,
    CRC32_CUSTOM,
    CRC16,
    CRC16_CUSTOM,
    /* The one's complement sum of IPv4, TCP and UDP. */
    ONES_COMPLEMENT16,
    /* As CRC16 here. */
    TARGET_DEFAULT
}

extern Hash<O> {
    Hash(PSA_HashAlgorithm_t algo);
    /* The hash of a tuple of fields, cut to O. */
    @pure
    O get_hash<D>(in D data);
    /* base + (hash of data) mod max. */
    @pure
    O get_hash<T, D>(in T base, in D data, in T max);
}

/* A hash over what was added since `clear`; each run of its parser or control begins as after `clear`. */
extern Checksum<W> {
    Checksum(PSA_HashAlgorithm_t hash);
    void clear();
    void update<T>(in T data);
    @noSideEffects
    W get();
}

/* The checksum of IPv4, TCP and UDP over what was added and not taken away since `clear` (RFC 1624); each run of its parser or
 * control begins as after `clear`. Data is a multiple of 16 bits. */
extern InternetChecksum {
    InternetChecksum();
    void clear();
    void add<T>(in T data);
    void subtract<T>(in T data);
    @noSideEffects
    bit<16> get();
    /* The state of the sum, for set_state. */
    @noSideEffects
    bit<16> get_state();
    void set_state(in bit<16> checksum_state);
}

enum PSA_CounterType_t {
    PACKETS,
    BYTES,
    PACKETS_AND_BYTES
}

/* An array of counters of type W. The control plane reads them; the program only counts. */
@noWarn("unused")
extern Counter<W, S> {
    Counter(bit<32> n_counters, PSA_CounterType_t type);
    /* Counts the packet in the cell; an index out of range counts nothing. */
    void count(in S index);
}

/* A counter for each entry of a table, bound by the table's property `psa_direct_counter`. */
@noWarn("unused")
extern DirectCounter<W> {
    DirectCounter(PSA_CounterType_t type);
    /* Allowed for clarity within the table's actions; the hit counts anyway. */
    void count();
}

enum PSA_MeterType_t {
    PACKETS,
    BYTES
}

enum PSA_MeterColor_t {
    RED,
    GREEN,
    YELLOW
}

/* An array of two-rate three-colour meters (RFC 2698). The control plane sets rates and bursts. */
extern Meter<S> {
    Meter(bit<32> n_meters, PSA_MeterType_t type);
    /* Meters the packet in the cell, which had that colour before, and gives its colour. */
    PSA_MeterColor_t execute(in S index, in PSA_MeterColor_t color);
    /* As if the packet had been green before. */
    PSA_MeterColor_t execute(in S index);
}

/* A meter for each entry of a table, bound by the table's property `psa_direct_meter`. */
extern DirectMeter {
    DirectMeter(PSA_MeterType_t type);
    PSA_MeterColor_t execute(in PSA_MeterColor_t color);
    PSA_MeterColor_t execute();
}

/* An array of values of type T, which live on from packet to packet. */
extern Register<T, S> {
    /* Cells 0 to size - 1, zero at first. */
    Register(bit<32> size);
    Register(bit<32> size, T initial_value);
    /* The value of a cell; out of range, the result is not specified. */
    @noSideEffects
    T read(in S index);
    /* Sets a cell; out of range, nothing happens. */
    void write(in S index, in T value);
}

/* Gives numbers from min to max, both included. */
extern Random<T> {
    Random(T min, T max);
    T read();
}

/* Actions with arguments that entries of one or more tables share, bound by the property `psa_implementation`. */
extern ActionProfile {
    ActionProfile(bit<32> size);
}

/* An action profile whose members form groups; a hash of the table's `selector` fields picks one. */
extern ActionSelector {
    ActionSelector(PSA_HashAlgorithm_t algo, bit<32> size, bit<32> outputWidth);
}

/* Sends messages to the control plane. */
extern Digest<T> {
    Digest();
    void pack(in T data);
}

/* The programmable blocks, in the order in which a packet goes through them. */

parser IngressParser<H, M, RESUBM, RECIRCM>(
    packet_in buffer,
    out H parsed_hdr,
    inout M user_meta,
    in psa_ingress_parser_input_metadata_t istd,
    in RESUBM resubmit_meta,
    in RECIRCM recirculate_meta);

control Ingress<H, M>(
    inout H hdr,
    inout M user_meta,
    in psa_ingress_input_metadata_t istd,
    inout psa_ingress_output_metadata_t ostd);

control IngressDeparser<H, M, CI2EM, RESUBM, NM>(
    packet_out buffer,
    out CI2EM clone_i2e_meta,
    out RESUBM resubmit_meta,
    out NM normal_meta,
    inout H hdr,
    in M meta,
    in psa_ingress_output_metadata_t istd);

parser EgressParser<H, M, NM, CI2EM, CE2EM>(
    packet_in buffer,
    out H parsed_hdr,
    inout M user_meta,
    in psa_egress_parser_input_metadata_t istd,
    in NM normal_meta,
    in CI2EM clone_i2e_meta,
    in CE2EM clone_e2e_meta);

control Egress<H, M>(
    inout H hdr,
    inout M user_meta,
    in psa_egress_input_metadata_t istd,
    inout psa_egress_output_metadata_t ostd);

control EgressDeparser<H, M, CE2EM, RECIRCM>(
    packet_out buffer,
    out CE2EM clone_e2e_meta,
    out RECIRCM recirculate_meta,
    inout H hdr,
    in M meta,
    in psa_egress_output_metadata_t istd,
    in psa_egress_deparser_input_metadata_t edstd);

package IngressPipeline<IH, IM, NM, CI2EM, RESUBM, RECIRCM>(
    IngressParser<IH, IM, RESUBM, RECIRCM> ip,
    Ingress<IH, IM> ig,
    IngressDeparser<IH, IM, CI2EM, RESUBM, NM> id);

package EgressPipeline<EH, EM, NM, CI2EM, CE2EM, RECIRCM>(
    EgressParser<EH, EM, NM, CI2EM, CE2EM> ep,
    Egress<EH, EM> eg,
    EgressDeparser<EH, EM, CE2EM, RECIRCM> ed);

package PSA_Switch<IH, IM, EH, EM, NM, CI2EM, CE2EM, RESUBM, RECIRCM>(
    IngressPipeline<IH, IM, NM, CI2EM, RESUBM, RECIRCM> ingress,
    PacketReplicationEngine pre,
    EgressPipeline<EH, EM, NM, CI2EM, CE2EM, RECIRCM> egress,
    BufferingQueueingEngine bqe);

#endif
