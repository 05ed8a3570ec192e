"""Bad input of users who mean harm: each form works or gives an error of ours with the place; nothing hangs."""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import stub
import tilewright as triton
import tilewright.language as tl
from tilewright import diagnostics as errors
from tilewright.runtime.building.folders import bound_bytes
from tilewright.runtime.cpu import build
from written_kernels import written_kernel

HEADER = """import tilewright as triton
import tilewright.language as tl
TABLE = {(1, 2): 5.0}
@triton.jit
def kernel(x_ptr, r, n: tl.constexpr, s: tl.constexpr):
"""


def kernel_of(tmp_path: Path, body: str) -> Any:
    """The kernel with this body."""
    return written_kernel(tmp_path / "hostile.py", HEADER, body)


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ("a = (*r, 1)", errors.DTypeError, "takes a tuple apart"),
        ("a = globals()", errors.UnsupportedLanguageConstruct, "names around its call"),
        ("a = locals()", errors.UnsupportedLanguageConstruct, "names around its call"),
        ("a = vars()", errors.UnsupportedLanguageConstruct, "names around its call"),
        ("a = dir()", errors.UnsupportedLanguageConstruct, "names around its call"),
        ("a = eval('n')", errors.UnsupportedLanguageConstruct, "names around its call"),
        ("a = exec('n = 1')", errors.UnsupportedLanguageConstruct, "names around its call"),
        ("tl.store(*s)", errors.DTypeError, "takes a tuple apart"),
        ("a = (1, 2)[::0]", errors.DTypeError, "cannot be zero"),
        ("t = ((1, 2), (3, 4))\na = t[0, 1]", errors.DTypeError, "not tuple"),
        ("a = [p for p in 5]", errors.DTypeError, "not iterable"),
        ("a = [p + q for p, q in ((1, 2),)]", errors.UnsupportedLanguageConstruct, "comprehension"),
        ("a = isinstance(r)", errors.UnsupportedLanguageConstruct, "isinstance"),
        ("a = isinstance(n, 3)", errors.UnsupportedLanguageConstruct, "isinstance"),
        ("a = len()", errors.UnsupportedLanguageConstruct, "one argument"),
        ("a = max(r, 3, key=4)", errors.UnsupportedLanguageConstruct, "max"),
        ("x_ptr[0]: tl.constexpr = 3", errors.UnsupportedLanguageConstruct, "no array"),
        ("match n:\n    case 4: pass", errors.UnsupportedLanguageConstruct, "Match"),
        ("for i in range(): pass", errors.ArgumentError, "1 to 3 bounds"),
        ("for i in range(1, 2, 3, 4): pass", errors.ArgumentError, "1 to 3 bounds"),
        ("for i in range(0, 4, 0): pass", errors.ArgumentError, "must not be 0"),
        ("for i in tl.static_range(10**9): pass", errors.UnsupportedLanguageConstruct, "written out"),
        ("for i in tl.static_range(0.5): pass", errors.DTypeError, "static_range"),
        ("a = 2 ** (10 ** 10)", errors.DTypeError, "bits"),
        ("tl.store(x_ptr, 1 << 60000)", errors.DTypeError, "64 bits"),
        ("tl.store(x_ptr, s[5])", errors.DTypeError, r"s has no item 5\n(.|\n)*it has 1, counted from 0"),
        ("tl.store(x_ptr, TABLE[n])", errors.DTypeError, r"TABLE has no key 4\n(.|\n)*its keys are \(1, 2\)"),
        ("tl.store(x_ptr, n[5])", errors.DTypeError, "cannot index 4"),
        ("tl.static_assert(f'{s:d}' == '4')", errors.DTypeError, "cannot format"),
    ],
)
def test_what_is_not_in_the_language(tmp_path: Path, body: str, kind: Any, said: str) -> None:
    with pytest.raises(kind, match=said) as caught:
        kernel_of(tmp_path, body).translate('*fp32:16, i32, 4, "a"')
    assert "hostile.py:" in str(caught.value) and "^" in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        'tl.static_assert(f"{n:03d}" == "004")',
        'tl.static_assert(f"{s!r}" == "\'a\'")',
        'tl.static_assert(f"{n=}" == "n=4")',
        'tl.static_assert(f"{{{n}}}\\n" == "{4}\\n")',
        'tl.static_assert(f"{n:{n}d}" == "   4")',
        'tl.static_assert("a" f"{n}" "b" == "a4b")',
        'tl.static_assert(s[0:1] == "a")',
        "tl.static_assert(TABLE[1, 2] == 5.0)",
        "µ = 3\ntl.static_assert(n == 4)\ntl.store(x_ptr, µ)",  # Python reads the micro sign as a Greek letter
    ],
)
def test_what_python_means_by_it(tmp_path: Path, body: str) -> None:
    assert "kernel(" in kernel_of(tmp_path, body).translate('*fp32:16, i32, 4, "a"').source


@triton.jit
def root_kernel(x_ptr, N: tl.constexpr):
    sigma: tl.constexpr = 1.0 / tl.math.sqrt(N)
    tl.store(x_ptr + tl.arange(0, 4), tl.load(x_ptr + tl.arange(0, 4)) * sigma)


def test_a_run_time_value_may_be_named_constexpr(run_everywhere: Any) -> None:
    (x,) = run_everywhere(root_kernel, (1,), np.ones(4, np.float32), N=4.0)
    np.testing.assert_array_equal(x, 0.5)


@triton.jit
def endless(x_ptr):
    endless(x_ptr)


def test_a_long_chain_of_calls_is_shortened() -> None:
    with pytest.raises(errors.UnsupportedLanguageConstruct, match="64 calls within each other") as caught:
        endless.translate("*fp32:16")
    assert "more calls)" in str(caught.value) and len(str(caught.value).splitlines()) < 40


class Settings:
    """What a kernel reads of a class."""

    block = 4.0

    @staticmethod
    def scale(x_ptr: Any) -> None:
        """Does nothing."""


class Callable:
    """Something that can be called and is no function."""

    def __call__(self, x_ptr: Any) -> None:
        """Does nothing."""

    def method(self, x_ptr: Any) -> None:
        """Does nothing."""


async def coroutine(x_ptr: Any) -> None:
    """Does nothing."""


def with_any_names(x_ptr: Any, **names: Any) -> None:
    """Does nothing."""


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (root_kernel, "twice"),
        (5, "not 5"),
        (dict, "written with def"),
        (Callable(), "written with def"),
        (Callable().method, "without self"),
        (functools.partial(len), "written with def"),
        (lambda x_ptr: None, "lambda"),
        (coroutine, "coroutine"),
        (with_any_names, r"\*\*names"),
        (classmethod(with_any_names), "a class method"),
        (triton.autotune([triton.Config({})], [])(triton.jit(Settings.scale)), "stands above @autotune"),
    ],
    ids=lambda one: (
        one if isinstance(one, str) else type(one).__name__
    ),  # addresses would differ from process to process
)
def test_what_is_no_kernel(what: Any, said: str) -> None:
    with pytest.raises(errors.NoSourceError, match=said):
        triton.jit(what)


@pytest.mark.parametrize("decorator", [triton.heuristics({}), triton.autotune([triton.Config({})], [])])
def test_decorators_of_kernels_above_a_plain_function(decorator: Any) -> None:
    with pytest.raises(errors.NoSourceError, match="stands above coroutine, which is no kernel"):
        decorator(coroutine)


@pytest.mark.parametrize("value", ("abc", "-1", "1.5", "\u00b2", "\u0663"))
def test_a_bound_that_is_no_number(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_MB", value)
    with pytest.raises(errors.TilewrightError, match="megabytes"):
        bound_bytes()


@pytest.mark.skipif(shutil.which("false") is None, reason="no program called false")
def test_a_compiler_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "compiler", lambda: shutil.which("false"))
    with pytest.raises(
        errors.ToolchainError, match="false rejects .*, with status 1:\nit has said nothing; .CXX names"
    ):
        build._compiled("int x;", (), tmp_path)


FORKING = """
import os, sys, threading, time
import numpy as np
import tilewright as triton, tilewright.language as tl

@triton.jit
def kernel(x_ptr, VALUE: tl.constexpr):
    tl.store(x_ptr, VALUE)

def launch(value):
    x = np.zeros(4, np.float32)
    kernel[(1,)](x, value)
    return x[0] == value

tuning = threading.Event()

def timed(launch, quantiles=None):
    launch()
    tuning.set()
    time.sleep(0.2)  # the other thread forks now
    return [1.0, 1.0, 1.0]

@triton.autotune([triton.Config({}, num_warps=warps) for warps in (1, 2)], key=["n"], do_bench=timed)
@triton.jit
def tuned_kernel(x_ptr, n):
    tl.store(x_ptr, n)

def launch_tuned(value):
    x = np.zeros(4, np.float32)
    tuned_kernel[(1,)](x, value)
    return x[0] == value

thread = threading.Thread(target=launch, args=(4,))
thread.start()
while not any(sys.argv[1] in name for name in list(sys.modules)):  # until the thread imports what it needs
    time.sleep(0.001)
child = os.fork()
if child == 0:
    os._exit(0 if launch(3) and launch(4) else 1)
thread.join()
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]
thread = threading.Thread(target=launch_tuned, args=(5,))
thread.start()
tuning.wait()
child = os.fork()
if child == 0:
    os._exit(0 if launch_tuned(6) and launch_tuned(5) else 1)
thread.join()
codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
sys.exit(any(codes))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    "module", ["tilewright.frontend", "tilewright.runtime.cpu", "tilewright.runtime.cpu.tensor_maps"]
)
def test_a_fork_while_another_thread_imports(module: str, tmp_path: Path) -> None:
    file = tmp_path / "forking.py"
    file.write_text(FORKING)
    around = os.environ | {"TILEWRIGHT_MODE": "cpu", "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, str(file), module], env=around, timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


FACTOR, KIND, LISTED = 3.0, tl.float32, [1.0]


@triton.jit
def helper(x):
    return x + 1.0


@triton.jit
def scaled(x_ptr):
    tl.store(x_ptr, FACTOR)


@triton.jit
def typed(x_ptr):
    tl.store(x_ptr, tl.full((), 0.1, KIND))


@triton.jit
def listed(x_ptr):
    tl.store(x_ptr, LISTED[0])


@triton.jit
def helped(x_ptr):
    tl.store(x_ptr, helper(tl.load(x_ptr)))


@triton.jit
def new_helper(x):
    return x + 2.0


@pytest.mark.parametrize(
    ("kernel", "name", "value"),
    [
        (scaled, "FACTOR", 4.0),
        (scaled, "FACTOR", "four"),
        (scaled, "FACTOR", None),
        (typed, "KIND", tl.float16),
        (helped, "helper", new_helper),
    ],
    ids=str,
)
def test_a_global_that_changes_between_launches(
    kernel: Any, name: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    kernel[(1,)](np.zeros(1, np.float32))
    monkeypatch.setitem(globals(), name, value)
    with pytest.raises(errors.GlobalChangedError, match=f"{name} has changed"):
        kernel[(1,)](np.zeros(1, np.float32))


def test_what_changes_in_place_or_around_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    around = 1.0

    @triton.jit
    def inner(x_ptr):
        tl.store(x_ptr, around)

    for kernel in (inner, listed):
        kernel[(1,)](np.zeros(1, np.float32))
    around = 2.0
    LISTED[0] = 2.0
    for kernel, name in ((inner, "around"), (listed, "LISTED")):
        with pytest.raises(errors.GlobalChangedError, match=f"{name} has changed"):
            kernel[(1,)](np.zeros(1, np.float32))


def chosen(factor: float) -> float:
    return factor * SCALE[0]


SCALE = [2.0]


@triton.jit
def settled(x_ptr):
    tl.store(x_ptr, Settings.block)


@triton.jit
def computed(x_ptr):
    tl.store(x_ptr, chosen(3.0))


@triton.jit
def from_module(x_ptr):
    tl.store(x_ptr, stub.LAUNCHED)


@pytest.mark.parametrize(
    ("kernel", "owner", "name", "value", "shown"),
    [
        (settled, Settings, "block", 5.0, "Settings.block"),
        (from_module, stub, "LAUNCHED", 5.0, "stub.LAUNCHED"),
        (computed, sys.modules[__name__], "SCALE", [3.0], "SCALE"),
        (computed, sys.modules[__name__], "chosen", lambda factor: factor, "chosen"),
    ],
    ids=("member", "of a module", "read by a function", "function"),
)
def test_members_and_compile_time_functions_that_change_between_launches(
    kernel: Any, owner: Any, name: str, value: Any, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setattr(stub, "LAUNCHED", 4.0, raising=False)
    for _ in range(2):
        kernel[(1,)](np.zeros(1, np.float32))
    monkeypatch.setattr(owner, name, value)
    with pytest.raises(errors.GlobalChangedError, match=f"{shown} has changed"):
        kernel[(1,)](np.zeros(1, np.float32))


@dataclasses.dataclass
class Sizes:
    """Equal where its members are, so that it has no hash."""

    side: float = 2.0
    sides: list[float] = dataclasses.field(default_factory=lambda: [2.0])


@dataclasses.dataclass
class Nested:
    """What stands in global names: a kernel reads one number of each."""

    sizes: Sizes = dataclasses.field(default_factory=Sizes)
    space: Any = dataclasses.field(default_factory=lambda: SimpleNamespace(sub=SimpleNamespace(side=2.0)))
    lists: list[list[float]] = dataclasses.field(default_factory=lambda: [[1.0, 2.0]])
    words: dict[str, dict[str, float]] = dataclasses.field(default_factory=lambda: {"x": {"y": 2.0}})


NESTED = SIZES = SPACE = LISTS = WORDS = None


@triton.jit
def of_nested(x_ptr):
    tl.store(x_ptr, SIZES.side + SIZES.sides[0] + SPACE.sub.side + LISTS[0][1] + WORDS["x"]["y"] + NESTED.sizes.side)


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ("SIZES.side = 7.0", "Sizes.side"),
        ("SIZES.sides[0] = 7.0", "Sizes.sides"),
        ("SPACE.sub.side = 7.0", "SimpleNamespace.side"),
        ("SPACE.sub = SimpleNamespace(side=7.0)", "SimpleNamespace.sub"),
        ("LISTS[0][1] = 7.0", "LISTS"),
        ("WORDS['x']['y'] = 7.0", "WORDS"),
        ("SIZES = Sizes(7.0)", "SIZES"),
        ("NESTED.sizes = Sizes(7.0)", "Nested.sizes"),
    ],
)
def test_what_changes_inside_of_globals_between_launches(
    change: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    made, names = Nested(), globals()
    for name, value in {"NESTED": Nested(), **{word.upper(): part for word, part in vars(made).items()}}.items():
        monkeypatch.setitem(names, name, value)
    kernel = triton.jit(of_nested.fn)
    for _ in range(2):
        kernel[(1,)](np.zeros(1, np.float32))
    exec(change, names)
    with pytest.raises(errors.GlobalChangedError, match=f"{shown} has changed"):
        kernel[(1,)](np.zeros(1, np.float32))


def test_form_feeds_in_front_of_statements(tmp_path: Path, run_everywhere: Any) -> None:
    kernel = kernel_of(tmp_path, "\x0c    # a page\n\x0c    tl.store(x_ptr, r)\n\x0c    tl.store(x_ptr, r + n)")
    assert run_everywhere(kernel, (1,), np.zeros(1, np.float32), 3, 4, "a")[0][0] == 7


def test_parameters_behind_a_star(tmp_path: Path, run_everywhere: Any) -> None:
    header = HEADER.replace("x_ptr, r, n: tl.constexpr, s: tl.constexpr", "x_ptr, *r, n: tl.constexpr = 2")
    kernel = written_kernel(tmp_path / "starred.py", header, "tl.store(x_ptr, r[0] * r[1] + n)")
    assert run_everywhere(kernel, (1,), np.zeros(1, np.float32), 3, 4)[0][0] == 14


def test_carets_stand_below_tabs_and_behind_form_feeds(tmp_path: Path) -> None:
    kernel = kernel_of(tmp_path, "if n > 1:\n\x0c\n\ts = 'a\u2028b'\n\ttl.stoer(x_ptr, n)")
    with pytest.raises(errors.UnknownNameError) as caught:
        kernel.translate('*fp32:16, i32, 4, "a"')
    assert (
        caught.value.span is not None
        and caught.value.span.caret_lines() == "        \ttl.stoer(x_ptr, n)\n        \t^^^^^^^^"
    )
