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

#endif
