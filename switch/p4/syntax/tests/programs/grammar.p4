// One of each production of the grammar, and the places where it is ambiguous. Nothing here has a meaning.

#include <core.p4>

const bit<8> shifted = 1 << 2 >> 1;
const bool compared = 1 < 2 && 3 > 2 || !(4 >= 5 == true);
const int arithmetic = -1 + +2 * ~3 / 4 % 5 - 6 |+| 7 |-| 8 ++ 9 & 10 | 11 ^ 12;
const bit<16> chosen = true ? 1 : false ? 2 : 3;
const bit<(8 + 8)> wide = 16w0xFF_00;
const int<4> negative = -4s1;
const string greeting = "say \"hello\"\n";
const error none = error.NoError;

typedef bit<48> mac_t;
type bit<9> port_t;
typedef struct inner { bit<1> flag; } inner_t;
enum colour { red, green, }
enum bit<8> kind { a = 1, b = 8w2 }
error { Mine, Yours }
match_kind { fuzzy, }

header fixed_h { @brief("eight") bit<8> f; varbit<320> rest; }
header generic_h<T, U> { T t; U u; }
header_union either_h { fixed_h one; fixed_h two; }
struct all_t { fixed_h[4] stack; tuple<bit<8>, generic_h<bit<8>, bit<16>>> pair; list<tuple<bit<1>>> many; bool type; }

extern helper<T> {
    helper(bit<32> size);
    helper();
    @pure T get<U>(in U key, out T value);
    abstract void hook(inout T value);
}
extern forward;
extern void free_function<T>(in T x, bit<8> y = 5);
extern T generic_result<T>();

bit<8> twice(in bit<8> x) {
    return x + x;
}

action top(inout bit<8> x, bit<8> y) { x = y; }

parser p_t<H>(packet_in b, out H h);
control c_t<H>(inout H h);
package pkg<H>(p_t<H> p, c_t<H> c);

@annotated("with", 1 + (2)) @structured[1, "two", true] @pairs[key = 1, name = "x"]
parser prs(packet_in b, out all_t h)(bit<8> limit) {
    const bit<8> four = 4;
    bit<8> local = 3;
    helper<bit<8>>(32) object;
    @size(5) value_set<bit<16>>(4) values;
    @named state start {
        b.extract(h.stack.next);
        bit<16> ahead = b.lookahead<bit<16>>();
        b.extract<fixed_h>(h.stack[0], 8);
        { local = ahead[7:0]; ; }
        if (local == 1) local = 2; else { local = 3; }
        transition select(ahead, local[3:0]) {
            (1, 2): accept;
            (1 &&& 3, 4 .. 5): start;
            (_, default): next_state;
            values: reject;
            (ahead < 2 ? 1w0 : 1): reject;
            (bit<8>) 3 &&& 0xF: reject;
            default: accept;
        }
    }
    state next_state {
        transition accept;
    }
    state stuck { }
}

control ctl(inout all_t h, inout bit<8> m, @optional in bit<1> o)() {
    helper<bit<8>>() object = {
        void hook(inout bit<8> value) { value = 1; }
    };
    const tuple<bit<8>, bool> pair = { 1, true };
    bit<8> a;
    bit<8> b = 2;
    action set(bit<8> v) { a = v; }
    action with_direction(in bit<8> x, bit<8> y) { a = x |+| y; }
    table t {
        key = {
            h.stack[0].f : exact @name("f");
            a < b ? a : b : lpm;
            m[3:0] : ternary;
        }
        actions = { @tableonly set; with_direction(a); @defaultonly NoAction(); }
        const default_action = set(1);
        size = 16;
        @hidden implementation = helper<bit<8>>(3);
        entries = {
            (1, 2 &&& 3, _) : set(4);
            const priority = 5 : (1, default, 3) : with_direction(1) @noise;
            priority = (a + 1) : 7 : set(1);
        }
    }
    apply @atomic {
        a = b;
        a += 1; a -= 1; a *= 2; a /= 2; a %= 2; a &= 1; a |= 1; a ^= 1; a <<= 1; a >>= 1; a |+|= 1; a |-|= 1;
        a[3:0] = 5;
        m[a +: 2] = 1;
        bool less = a < b;
        bool shift = a >> 1 < b;
        less = a < (b) && (a) > b;
        generic_result<bit<8>>();
        a = (bit<8>) -b + (bit<8>) (b) - (mac_t) 3 [7:0];
        free_function<tuple<bit<8>, bit<generic_h>>>({ a, ... }, y = _);
        all_t s = { stack = { }, pair = { 1, 2 }, ... };
        fixed_h invalid = {#};
        s = ...;
        prs.apply(h);
        helper<bit<8>>.apply(h);
        object.get(1, _);
        top(a, 2);
        t.apply();
        if (t.apply().hit) { return; } else if (a == 1) exit; else { }
        if (less) if (shift) a = 1; else a = 2;
        switch (t.apply().action_run) {
            set: { a = 1; }
            with_direction:
            NoAction: { }
            default: @likely { }
        }
        switch (a) { 1: 2: { } kind.a: { } (bit<8>) 3: { } }
        @unroll for (bit<8> i = 0, a = 1; i < 4; i += 1, a += 2) { if (i == 2) continue; break; }
        for (bit<8> i in 1 .. 4) a += i;
        for (fixed_h one in h.stack) { }
        .top(a, 1);
        mac_t declared;
        .mac_t absolute;
        @hidden bit<8> annotated = 1;
    }
}

package_of() main;
