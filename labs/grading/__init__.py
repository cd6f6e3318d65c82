"""The grader of the labs. A lab's `grade.py` is a list of checks:

    from fairlane.labs.grading import Answer, Missed, check

    @check(2, "the program compiles")
    def compiles(answer: Answer) -> None:
        answer.p4("forward.p4")

    @check(3, "packets to 10.0.1.2 leave by port 2")
    def forwards(answer: Answer) -> None:
        result = answer.stf("forward.p4", TEST)
        if not result.passed:
            raise Missed(result.message, hint="which field does the table look at?")

A check that returns earns its points; `Missed` earns the points that it names, and says what was seen and what to look at. Whatever
a student's file does besides (raise, loop without end, return what no rate can be) is told with the file's own line, and the next
check goes on. `fairlane.labs.grading.algorithms` does that for algorithm files: for their functions, and for handlers that the network calls
within a run.
"""

from fairlane.labs.grading.answer import Answer
from fairlane.labs.grading.checks import NETWORK_S, Check, check
from fairlane.labs.grading.missed import Missed

__all__ = ["NETWORK_S", "Answer", "Check", "Missed", "check"]
