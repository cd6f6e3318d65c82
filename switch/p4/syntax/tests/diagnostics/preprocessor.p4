// error[missing-include] at 10: cannot find the file `nowhere.p4`
#include <nowhere.p4>
// warning[ignored-directive] at 2: `#includ` is no directive: the line is ignored
#includ <core.p4>
# a remark, which isn't one of the directives, and has "an open string
#another_remark(1);
// error[bad-directive] at 2: `#undef` awaits the name of a macro
#undef 1
// error[bad-condition] at 7: division by zero in the condition
#if 1 / 0
#endif
#if 0 && 1 / 0
#endif
// error[bad-condition] at 9: unexpected `2` in the condition
#if (1) 2
#endif
// error[stray-conditional] at 2: `#else` without `#if`
#else
// error[hash-error] at 2: this is wrong
#error this is wrong
// warning[hash-warning] at 2: this is doubtful
#warning this is doubtful
#define ONE 1
// warning[macro-redefined] at 9: macro `ONE` is defined anew, differently
#define ONE 2
#define ADD(a, b) a + b
// error[macro-arguments] at 17: macro `ADD` awaits 2 arguments, not 1
const int sum = ADD(1) 3;
#define PASTE(a, b) a ## b
const int three = PASTE(1, +) 2;
// error[bad-define] at 11: `##` cannot stand at an end of a macro's body
#define P ## x
// error[bad-token] at 24: the string does not end on its line
// error[unexpected-token] at 24: expected `;`, found `"open;"`
const string s = other "open;
// error[open-conditional] at 2: this conditional has no `#endif`
#ifdef NEVER
