parser p(inout bit<8> x) {
    state start {
// error[misplaced-statement] at 9: `exit` cannot stand in a parser state
        exit;
        transition select(x) {
// error[unexpected-token] at 15: expected `:`, found `accept`
            1 accept;
            2 : accept;
        }
    }
    state after {
        transition accept;
// error[unexpected-token] at 9: expected `}` after the transition, found `x`
        x = 1;
    }
// error[unexpected-token] at 5: expected `state` or `}`, found keyword `bit`
    bit<8> y;
}

// error[missing-state] at 8: parser `q` has no state
parser q() { }
