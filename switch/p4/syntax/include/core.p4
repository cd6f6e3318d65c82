/* The P4_16 core library: what every architecture relies on.
 *
 * Written from the P4_16 language specification, version 1.2.5, appendix D, and the sections named below. */

#ifndef _CORE_P4_
#define _CORE_P4_

/* Errors that a parser can meet (section 13.9). Programs add their own by further `error` declarations. */
error {
    /* The parser has met no error. */
    NoError,
    /* The packet holds fewer bits than `extract`, `lookahead` or `advance` needs. */
    PacketTooShort,
    /* No case of a `select` matches. */
    NoMatch,
    /* A header stack has no such element: `next` of a full one, `last` of an empty one. */
    StackOutOfBounds,
    /* A `varbit` field is too short for the number of bits asked for. */
    HeaderTooShort,
    /* The parser took longer than the target allows. */
    ParserTimeout,
    /* An argument has a value that the target does not support. */
    ParserInvalidArgument
}

/* The packet that a parser reads (section 13.8). */
extern packet_in {
    /* Reads a header of fixed size and makes it valid. */
    void extract<T>(out T hdr);
    /* Reads a header with one `varbit` field, which takes that many bits. */
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);
    /* Reads without moving on. */
    T lookahead<T>();
    /* Moves on without reading. */
    void advance(in bit<32> sizeInBits);
    /* The packet's length in bytes; not every target knows it. */
    bit<32> length();
}

/* The packet that a deparser writes (section 16). */
extern packet_out {
    /* Appends a header, if it is valid; the members of a stack, struct or union one by one. */
    void emit<T>(in T hdr);
}

/* In a parser: goes to `reject` with the error `toSignal` unless `check` holds (section 13.7). */
extern void verify(in bool check, in error toSignal);

/* Does nothing; the default action of a table that names none (section 14.2.1.3). */
@noWarn("unused")
action NoAction() {}

/* Kinds of matches of a table's key (section 7.1.3). */
match_kind {
    /* All bits are equal. */
    exact,
    /* The bits under a mask are equal; the entry of the highest priority wins. */
    ternary,
    /* The leading bits are equal; the longest prefix wins. */
    lpm
}

/* Fails the compilation with the message unless `check`, known at compile time, holds (appendix D). */
extern bool static_assert(bool check, string message);

/* The same without a message. */
extern bool static_assert(bool check);

#endif
