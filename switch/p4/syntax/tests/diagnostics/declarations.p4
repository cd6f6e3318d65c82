// error[top-level-variable] at 8: variable `counter` at the top level
bit<8> counter = 0;

// error[unexpected-token] at 14: constant `limit` has no value
const bit<8> limit;

struct missing_semicolons {
// error[unexpected-token] at 13: expected `;`, found keyword `bit`
    bit<8> a
    bit<8> b;
// error[unexpected-token] at 11: expected a name, found `;`
    bit<8>;
// error[unexpected-token] at 12: expected a name, found keyword `in`
    bit<8> in;
    bit<8> c;
}

// error[enum-value] at 17: member `b` has no value
enum bit<8> e { b, c = 1 }
// error[enum-value] at 10: member `x` has a value, but the enum no type
enum f { x = 1 }

// error[unexpected-token] at 1: expected a declaration, found `x`
x = 5;

// error[misplaced-declaration] at 1: `table` can stand only within a control
table t { }

// error[bad-integer] at 18: `8w0b12`: `2` is no digit of base 2
const bit<8> n = 8w0b12;
// error[unexpected-token] at 1: this `}` closes nothing
}
// error[bad-token] at 1: the character `é` begins no token
é
