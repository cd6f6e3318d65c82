/* The v1model architecture, as BMv2's simple_switch runs it.
 *
 * Written from the public documentation of v1model and simple_switch. The interface (names, types and the order of
 * parameters) is that of the architecture; by default its version is 20180101, in which indices of counters, meters and
 * registers are bit<32>. From version 20200408 on, the type of an index is a type parameter. */

#ifndef _V1_MODEL_P4_
#define _V1_MODEL_P4_

#include <core.p4>

#ifndef V1MODEL_VERSION
#define V1MODEL_VERSION 20180101
#endif

match_kind {
    /* The field lies between two bounds, both included. */
    range,
    /* The field is equal, or the entry does not look at it. */
    optional,
    /* The field goes into the hash by which an action selector picks a member; it is no part of the key. */
    selector
}

const bit<32> __v1model_version = V1MODEL_VERSION;

#if V1MODEL_VERSION >= 20200408
typedef bit<9> PortId_t;
#define V1MODEL_PORT PortId_t
#define V1MODEL_INDEX I
#else
#define V1MODEL_PORT bit<9>
#define V1MODEL_INDEX bit<32>
#endif

/* What the architecture knows of a packet. An `@alias` is the name of the field within simple_switch. */
@metadata @name("standard_metadata")
struct standard_metadata_t {
    /* The port that the packet came in by. */
    V1MODEL_PORT ingress_port;
    /* Written in ingress: the port to send to. */
    V1MODEL_PORT egress_spec;
    /* Read in egress: the port that the packet will leave by. */
    V1MODEL_PORT egress_port;
    /* 0 for a packet from a port; otherwise what made it: 1 an ingress clone, 2 an egress clone, 4 recirculation,
     * 5 multicast, 6 resubmission. */
    bit<32> instance_type;
    /* In bytes, as received. */
    bit<32> packet_length;
    /* When the packet entered its queue, in microseconds since the switch started. */
    @alias("queueing_metadata.enq_timestamp")
    bit<32> enq_timestamp;
    /* Packets in the queue when this one entered. */
    @alias("queueing_metadata.enq_qdepth")
    bit<19> enq_qdepth;
    /* How long the packet waited, in microseconds. */
    @alias("queueing_metadata.deq_timedelta")
    bit<32> deq_timedelta;
    /* Packets in the queue when this one left it. */
    @alias("queueing_metadata.deq_qdepth")
    bit<19> deq_qdepth;
    /* When ingress began, in microseconds since the switch started. */
    @alias("intrinsic_metadata.ingress_global_timestamp")
    bit<48> ingress_global_timestamp;
    /* When egress began, in microseconds since the switch started. */
    @alias("intrinsic_metadata.egress_global_timestamp")
    bit<48> egress_global_timestamp;
    /* Written in ingress: the multicast group, or 0 for none. */
    @alias("intrinsic_metadata.mcast_grp")
    bit<16> mcast_grp;
    /* Read in egress: which replica of the multicast group this is. */
    @alias("intrinsic_metadata.egress_rid")
    bit<16> egress_rid;
    /* 1 when a checksum was found wrong before ingress. */
    bit<1> checksum_error;
    /* Why the parser stopped, if it met an error. */
    error parser_error;
    /* Written in ingress: the priority queue of the egress port. */
    @alias("intrinsic_metadata.priority")
    bit<3> priority;
}

/* What a counter counts. */
enum CounterType {
    packets,
    bytes,
    packets_and_bytes
}

/* What a meter meters. */
enum MeterType {
    packets,
    bytes
}

/* An array of counters. The control plane reads them; the program only counts. */
#if V1MODEL_VERSION >= 20200408
extern counter<I> {
#else
extern counter {
#endif
    /* Cells 0 to size - 1. */
    counter(bit<32> size, CounterType type);
    /* Counts the packet in the cell; an index out of range counts nothing. */
    void count(in V1MODEL_INDEX index);
}

/* A counter for each entry of a table, bound by the table's property `counters`. It counts on each hit. */
extern direct_counter {
    direct_counter(CounterType type);
    /* Allowed for clarity within the table's actions; the hit counts anyway. */
    void count();
}

#define V1MODEL_METER_COLOR_GREEN 0
#define V1MODEL_METER_COLOR_YELLOW 1
#define V1MODEL_METER_COLOR_RED 2

/* An array of two-rate three-colour meters (RFC 2698). The control plane sets rates and bursts. */
#if V1MODEL_VERSION >= 20200408
extern meter<I> {
#else
extern meter {
#endif
    /* Cells 0 to size - 1. */
    meter(bit<32> size, MeterType type);
    /* Meters the packet in the cell and gives its colour: 0 green, 1 yellow, 2 red. T is bit<W>, W at least 2. Out of range, the
     * result is not specified. */
    void execute_meter<T>(in V1MODEL_INDEX index, out T result);
}

/* A meter for each entry of a table, bound by the table's property `meters`. */
extern direct_meter<T> {
    direct_meter(MeterType type);
    /* The colour of the packet, in an action of the table only. */
    void read(out T result);
}

/* An array of values of type T, which live on from packet to packet. T is bit<W>. */
#if V1MODEL_VERSION >= 20200408
extern register<T, I> {
#else
extern register<T> {
#endif
    /* Cells 0 to size - 1, zero at first. */
    register(bit<32> size);
    /* The value of a cell; out of range, the result is not specified. */
    @noSideEffects
    void read(out T result, in V1MODEL_INDEX index);
    /* Sets a cell; out of range, nothing happens. */
    void write(in V1MODEL_INDEX index, in T value);
}

/* Actions with arguments that entries of one or more tables share, bound by the property `implementation`. */
extern action_profile {
    action_profile(bit<32> size);
}

/* Gives a number from lo to hi, both included. T is bit<W>. */
extern void random<T>(out T result, in T lo, in T hi);

/* In ingress: sends a message with these values, as they are now, to the control plane. The receiver is ignored by
 * simple_switch. */
extern void digest<T>(in bit<32> receiver, in T data);

enum HashAlgorithm {
    crc32,
    crc32_custom,
    crc16,
    crc16_custom,
    random,
    identity,
    csum16,
    xor16
}

@deprecated("Please use mark_to_drop(standard_metadata) instead.")
extern void mark_to_drop();

/* Sets egress_spec to the drop port and mcast_grp to 0. What is written later wins. */
@pure
extern void mark_to_drop(inout standard_metadata_t standard_metadata);

/* Gives base + (hash of data) mod max, or base when max is 0. O, T and M are bit<W>; D is a tuple of fields. */
@pure
extern void hash<O, T, D, M>(out O result, in HashAlgorithm algo, in T base, in D data, in M max);

/* An action profile whose members form groups; a hash of the table's `selector` fields picks one. */
extern action_selector {
    action_selector(HashAlgorithm algorithm, bit<32> size, bit<32> outputWidth);
}

/* Where a clone is made: ingress to egress, egress to egress. */
enum CloneType {
    I2E,
    E2E
}

@deprecated("Please use verify_checksum/update_checksum instead.")
extern Checksum16 {
    Checksum16();
    bit<16> get<D>(in D data);
}

/* In VerifyChecksum: when `condition` holds and the checksum of `data` is not `checksum`, sets checksum_error. T is a tuple of
 * bit<W>, int<W> and varbit<W> fields; O is bit<W>. */
extern void verify_checksum<T, O>(in bool condition, in T data, in O checksum, HashAlgorithm algo);

/* In ComputeChecksum: when `condition` holds, sets `checksum` to the checksum of `data`. */
@pure
extern void update_checksum<T, O>(in bool condition, in T data, inout O checksum, HashAlgorithm algo);

/* As verify_checksum, over `data` and all bytes that the parser left unread. */
extern void verify_checksum_with_payload<T, O>(in bool condition, in T data, in O checksum, HashAlgorithm algo);

/* As update_checksum, over `data` and all bytes that the parser left unread. */
@noSideEffects
extern void update_checksum_with_payload<T, O>(in bool condition, in T data, inout O checksum, HashAlgorithm algo);

/* Sends a copy of the packet to egress, by the clone session that the control plane has set up; user metadata of the copy is
 * zero. The last call of a pipeline pass wins. */
extern void clone(in CloneType type, in bit<32> session);

@deprecated("Please use 'resubmit_preserving_field_list' instead")
extern void resubmit<T>(in T data);

/* In ingress: sends the packet, as it came in, through parser and ingress again. User metadata marked @field_list(index) is
 * kept. */
extern void resubmit_preserving_field_list(bit<8> index);

@deprecated("Please use 'recirculate_preserving_field_list' instead")
extern void recirculate<T>(in T data);

/* In egress: sends the packet, as deparsed, through parser and ingress again. User metadata marked @field_list(index) is
 * kept. */
extern void recirculate_preserving_field_list(bit<8> index);

@deprecated("Please use 'clone_preserving_field_list' instead")
extern void clone3<T>(in CloneType type, in bit<32> session, in T data);

/* As clone, but the copy keeps the user metadata marked @field_list(index). */
extern void clone_preserving_field_list(in CloneType type, in bit<32> session, bit<8> index);

/* Cuts the packet off after that many bytes, as it leaves. */
extern void truncate(in bit<32> length);

/* Stops the switch with a message when `check` does not hold. */
extern void assert(in bool check);

/* As assert; for verification tools a premise rather than a claim. */
extern void assume(in bool check);

/* Writes a line to the log; each {} of the message stands for the next value. */
extern void log_msg(string msg);
extern void log_msg<T>(string msg, in T data);

/* The programmable blocks, in the order in which a packet goes through them. H is a struct of headers, header stacks and
 * header unions; M is a struct. */

parser Parser<H, M>(packet_in b,
                    out H parsedHdr,
                    inout M meta,
                    inout standard_metadata_t standard_metadata);

/* Only calls of verify_checksum and verify_checksum_with_payload. */
control VerifyChecksum<H, M>(inout H hdr,
                             inout M meta);

@pipeline
control Ingress<H, M>(inout H hdr,
                      inout M meta,
                      inout standard_metadata_t standard_metadata);

@pipeline
control Egress<H, M>(inout H hdr,
                     inout M meta,
                     inout standard_metadata_t standard_metadata);

/* Only calls of update_checksum and update_checksum_with_payload. */
control ComputeChecksum<H, M>(inout H hdr,
                              inout M meta);

/* Only calls of packet_out.emit. */
@deparser
control Deparser<H>(packet_out b, in H hdr);

package V1Switch<H, M>(Parser<H, M> p,
                       VerifyChecksum<H, M> vr,
                       Ingress<H, M> ig,
                       Egress<H, M> eg,
                       ComputeChecksum<H, M> ck,
                       Deparser<H> dep);

#undef V1MODEL_PORT
#undef V1MODEL_INDEX

#endif
