// Division for RCP, XCP and ABC, by Newton's iteration: BMv2 has none at run time.
//
//   1/d = inverse / 2^exponent,  1 <= d < 2^48,  17 <= exponent <= 64
//
//   d = m 2^(exponent - 32) with 2^15 <= m < 2^16;  2^32/m: a first guess 2^16 (48/17 - 32/17 m/2^16), wrong by 1/17 at most, and three steps
//   y <- y (2 - m y)
//
// inverse has 17 bits at most and a relative error below 2^-15: the lower bits of d are cut off, and the terms round down.

#ifndef RECIPROCAL
#define RECIPROCAL

control Reciprocal(in bit<64> d, out bit<64> inverse, out bit<8> exponent) {
    apply {
        bit<64> m = d;
        exponent = 64;
        if (m < (64w1 << 16)) { m = m << 32; exponent = exponent - 32; }
        if (m < (64w1 << 32)) { m = m << 16; exponent = exponent - 16; }
        if (m < (64w1 << 40)) { m = m << 8; exponent = exponent - 8; }
        if (m < (64w1 << 44)) { m = m << 4; exponent = exponent - 4; }
        if (m < (64w1 << 46)) { m = m << 2; exponent = exponent - 2; }
        if (m < (64w1 << 47)) { m = m << 1; exponent = exponent - 1; }
        m = m >> 32;
        inverse = 185043 - ((m * 123362) >> 16);
        inverse = (inverse * ((64w2 << 32) - m * inverse)) >> 32;
        inverse = (inverse * ((64w2 << 32) - m * inverse)) >> 32;
        inverse = (inverse * ((64w2 << 32) - m * inverse)) >> 32;
    }
}

#endif
