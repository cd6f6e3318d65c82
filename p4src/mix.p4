// A hash of 64 bits for what picks a slot or a cell by chance.

#ifndef MIX_P4
#define MIX_P4

// Every bit of x to every bit of the result, one to one (Stafford's variant 13 of the finalizer of MurmurHash3, as in SplitMix64).
// A CRC would not do: it is linear, so that the addresses of a subnet spread more evenly than by chance, or less, and the estimate is off.
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
