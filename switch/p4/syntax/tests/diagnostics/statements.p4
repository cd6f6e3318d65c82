control c(inout bit<8> x) {
    bit<8> y;
// error[misplaced-statement] at 5: expected a declaration or `apply`, found a statement
    y = 1;
    action a() {
// error[unexpected-token] at 11: expected `=`, found `==`
        y == 1;
// error[unexpected-token] at 17: expected an expression, found `;`
        y = 1 + ;
// error[unexpected-token] at 9: `else` without `if`
        else { }
        y = 2;
    }
    table t {
        key = {
// error[unexpected-token] at 13: the key has no match kind
            y;
            x : exact;
        }
// error[unexpected-token] at 25: a `;` cannot stand after the braces of a table's property
        actions = { a; };
// error[unexpected-token] at 9: `key` cannot be `const`
        const key = { }
    }
    apply {
// error[misplaced-annotation] at 9: this statement takes no annotation
        @quick y = 1;
// error[misplaced-declaration] at 21: a declaration cannot be a branch or a loop's body
        if (x == 1) bit<8> z;
// error[unexpected-token] at 14: expected `;`, found `y`
        y = 1
        y = 2;
// error[misplaced-declaration] at 9: `action` cannot be declared within a block
        action b() { }
    }
}

// error[missing-apply] at 9: control `d` has no `apply` block
control d() { }
