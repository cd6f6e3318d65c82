// Divisions in a program for another architecture: what no constant and no shift can replace.
control Block(inout bit<8> x, inout bit<8> y);
package Other(Block b);
bit<8> quotient(in bit<8> x, in bit<8> y) { return x / y; }
control Unreached(inout bit<8> x, inout bit<8> y) {  //~ control `Unreached` is unused
    apply { x = x / y; }
}
control Main(inout bit<8> x, inout bit<8> y) {
    bit<8> three = 3;
    const bit<8> FOUR = 4;
    action scale() { x /= y; }                       //~ `/` is only possible with constants or a power of two on the right
    apply {
        scale();
        x = x / three;                               //~ `/` is only possible with constants or a power of two on the right
        x = x % (y + 1);                             //~ `%` is only possible with constants or a power of two on the right
        x = x % 3;                                   //~ `%` is only possible with constants or a power of two on the right
        x = x / FOUR;
        x = x % 8;
        x = 0 / y;
        x = 200 / 3 + quotient(x, 2);
    }
}
Other(Main()) main;                                  //~ `main` is a `Other`, which is neither v1model's switch of six blocks nor PSA's
