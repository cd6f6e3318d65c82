control c(inout bit<8> x) {
    apply {
        if (x == 1) {
            x = 2;
    }
}

// error[unexpected-token] at 1: expected `}`, found keyword `struct`
struct s { bit<8> f; }

// error[unexpected-token] at 12: expected a type, found `{`
struct t { { } }
