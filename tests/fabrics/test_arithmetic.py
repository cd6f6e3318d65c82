"""Floating point that is the same on every machine: `fairlane.arithmetic` against integers, and that nothing else calls the C library's functions."""

from __future__ import annotations

import ast
import math
import os
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from fairlane import arithmetic, probes
from fairlane.topologies.model import _MEAN_STDS, JITTER_STDS

BITS = 400
ONE = 1 << BITS


def fixed(value: float) -> int:
    above, below = value.as_integer_ratio()
    return (above << BITS) // below


def exp(x: int) -> int:
    x >>= 20
    term = total = ONE
    k = 1
    while term:
        term = abs(term * x) // (k << BITS) * (1 if (term < 0) == (x < 0) else -1)
        total += term
        k += 1
    for _ in range(20):
        total = total * total >> BITS
    return total


def log(v: int) -> int:
    def between(v: int) -> int:
        """Of a number from 1 to 2: 2 artanh((v - 1) / (v + 1))."""
        z = ((v - ONE) << BITS) // (v + ONE)
        term, total, k = z, 0, 1
        while term:
            total += term // k
            term = (term * z >> BITS) * z >> BITS
            k += 2
        return 2 * total

    twos = v.bit_length() - 1 - BITS
    return twos * between(2 * ONE) + between(v >> twos if twos >= 0 else v << -twos)


def nearest(x: int) -> float:
    return float(Fraction(x, ONE))


def draws(draw: Callable[[random.Random], tuple[float, ...]]) -> Iterator[tuple[float, ...]]:
    rng = random.Random(1)
    return (draw(rng) for _ in range(1500))


@pytest.mark.parametrize("how", ["core", "digits"])
def test_each_function_gives_the_nearest_number(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "digits":
        monkeypatch.setattr(arithmetic, "_native", None)
    for (x,) in draws(lambda rng: (rng.uniform(-40, 40),)):
        assert arithmetic.exp(x) == nearest(exp(fixed(x))), x
    for (x,) in draws(lambda rng: (10 ** rng.uniform(-9, 9),)):
        assert arithmetic.log(x) == nearest(log(fixed(x))), x
    for base, exponent in draws(lambda rng: (10 ** rng.uniform(-6, 6), rng.choice((1 / 3, rng.uniform(-3, 3))))):
        assert arithmetic.power(base, exponent) == nearest(exp(fixed(exponent) * log(fixed(base)) >> BITS)), (base, exponent)
    for (x,) in draws(lambda rng: (rng.uniform(-1e6, 1e6),)):
        assert arithmetic.cube(x) == float(Fraction(x) ** 3), x


def test_where_the_core_is_sure() -> None:
    """Everywhere, but near 1, whose logarithm is small, at ties, and near the ends of the range."""
    native = pytest.importorskip("fairlane.native")
    assert None not in [native.ln(x) for (x,) in draws(lambda rng: (10 ** rng.uniform(-299, 299),))]
    assert None not in [native.exp(x) for (x,) in draws(lambda rng: (rng.uniform(-700, 700),))]
    assert None not in [native.power(*x) for x in draws(lambda rng: (10 ** rng.uniform(-6, 6), rng.uniform(-3, 3)))]
    assert native.power(1.5 + 2.0**-26, 2.0) is None  # a tie: its square has 54 digits
    assert native.ln(1 + 2.0**-50) is None and arithmetic.log(1 + 2.0**-50) == 2.0**-50 * (1 - 2.0**-51)
    assert native.ln(1.0) is None and native.ln(0.0) is None and native.exp(701.0) is None and native.power(0.0, 0.5) is None


def test_ends_of_the_range() -> None:
    assert arithmetic.exp(-1e300) == 0 and arithmetic.exp(1e300) == math.inf and arithmetic.exp(0) == 1
    assert arithmetic.log(0) == -math.inf and arithmetic.log(1) == 0
    assert arithmetic.power(1.08, 0) == 1 and arithmetic.power(0, 0.5) == 0
    assert math.isnan(arithmetic.exp(math.nan))


def test_what_is_no_number_stays_none() -> None:
    """Others' packets reach algorithms: a round trip of nan is none of Fairlane's faults."""
    for function in (arithmetic.exp, arithmetic.log, arithmetic.square, arithmetic.cube):
        assert math.isnan(function(math.nan)) and function(math.inf) == math.inf
    assert arithmetic.cube(-math.inf) == -math.inf and arithmetic.exp(-math.inf) == 0.0


def test_a_sum_is_rounded_after_each_number() -> None:
    """`sum` gives 1.0 since Python 3.12."""
    assert arithmetic.total([0.1] * 10) == 0.9999999999999999
    assert arithmetic.total(iter([])) == 0


def test_the_mean_of_jitter_with_an_end() -> None:
    n = JITTER_STDS
    assert pytest.approx(math.sqrt(2 / math.pi) * (1 - math.exp(-n * n / 2)) + n * math.erfc(n / math.sqrt(2)), rel=1e-15) == _MEAN_STDS


OF_THE_C_LIBRARY = frozenset(
    "acos acosh asin asinh atan atan2 atanh cbrt cos cosh dist erf erfc exp exp2 expm1 gamma hypot lgamma log log10 log1p log2 pow sin sinh tan tanh"
    " corrcoef cov dot einsum inner linalg matmul polyfit vdot".split()
)
OF_A_GENERATOR = frozenset("betavariate expovariate gammavariate gauss lognormvariate normalvariate paretovariate weibullvariate".split())
MODULES = ("math", "numpy", "np")
ALLOWED = {
    "arithmetic.py": {"**"},  # of whole numbers
    "controller/sketch.py": {"exp", "expm1", "hypot"},  # bounds in whole connections
    "live/sampler.py": {"**"},  # the live view's estimate of RED's average; in no file of a run
    "studies/intervals.py": {"**"},  # of whole numbers
    "suites/distributions.py": {"atan2"},  # the angle of a drawn ellipse
}


def is_whole(base: ast.expr) -> bool:
    """Powers of it are exact."""
    return isinstance(base, ast.Constant) and (isinstance(base.value, int) or base.value == 2)


def calls(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in MODULES:
            yield from ((node.lineno, name.name) for name in node.names if name.name in OF_THE_C_LIBRARY)
        elif isinstance(node, ast.Attribute):
            of_a_module = isinstance(node.value, ast.Name) and node.value.id in MODULES
            if node.attr in OF_A_GENERATOR or (of_a_module and node.attr in OF_THE_C_LIBRARY):
                yield node.lineno, node.attr
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield node.lineno, "@"


def test_sine_cosine_and_arcsine() -> None:
    rng = random.Random(5)
    for _ in range(300):
        x = rng.uniform(-2 * math.pi, 2 * math.pi)
        # The C library's have at most one unit in the last place more than half of one.
        assert abs(arithmetic.sin(x) - math.sin(x)) <= 2 * math.ulp(math.sin(x))
        assert abs(arithmetic.cos(x) - math.cos(x)) <= 2 * math.ulp(math.cos(x))
        y = rng.random() ** rng.choice((1, 20))
        assert abs(arithmetic.asin(y) - math.asin(y)) <= 2 * math.ulp(math.asin(y))
    assert (arithmetic.sin(0.0), arithmetic.cos(0.0), arithmetic.asin(0.0), arithmetic.asin(1.0)) == (0.0, 1.0, 0.0, math.pi / 2)


def test_nothing_else_calls_the_c_librarys_functions() -> None:
    """Else a run differs in a last bit, and soon in all of them, between two machines. Beside the labs, whose graders compare with a tolerance."""
    found = {}
    paths = [
        Path(folder) / name for folder, _, names in os.walk(probes.PACKAGE, followlinks=True) for name in names if name.endswith(".py")
    ]
    for path in paths:
        name = str(path.relative_to(probes.PACKAGE))
        if name.startswith("labs/"):
            continue
        allowed = ALLOWED.get(name, set())
        if named := [(line, what) for line, what in calls(ast.parse(path.read_text())) if what not in allowed]:
            found[name] = named
    assert len(paths) > 100 and found == {}
