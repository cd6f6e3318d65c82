// A 64-bit hash that picks a slot or cell at random.

#ifndef MIX_P4
#define MIX_P4

// Mixes every bit of x into every bit of the result, one to one (Stafford's variant 13 of MurmurHash3's finalizer, as in SplitMix64).
// A CRC is unsuitable: it is linear, so a subnet's addresses spread more or less evenly than at random, which biases the estimate.
control Mix(inout bit<64> x) {
    apply {
        x = x ^ (x >> 30);
        x = x * 0xBF58476D1CE4E5B9;
        x = x ^ (x >> 27);
        x = x * 0x94D049BB133111EB;
        x = x ^ (x >> 31);
    }
}

// The addresses of a packet, mixed into x. Of IPv6 one after the other: the exclusive or of addresses that count alike would be the same for many pairs.
control MixAddresses(in headers_t hdr, inout bit<64> x) {
#ifdef IPV6
    Mix() first;
    Mix() second;
    Mix() third;
    Mix() fourth;

    apply {
        x = x ^ hdr.ipv6.src_address[127:64];
        first.apply(x);
        x = x ^ hdr.ipv6.src_address[63:0];
        second.apply(x);
        x = x ^ hdr.ipv6.dst_address[127:64];
        third.apply(x);
        x = x ^ hdr.ipv6.dst_address[63:0];
        fourth.apply(x);
    }
#else
    Mix() both;

    apply {
        x = x ^ (hdr.ipv4.src_address ++ hdr.ipv4.dst_address);
        both.apply(x);
    }
#endif
}

#endif
