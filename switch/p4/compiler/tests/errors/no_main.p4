#include <core.p4>
#include <v1model.p4>
const bit<8> ONE = 1;                                //~ the program has no `main`
//~^ `ONE` is unused
