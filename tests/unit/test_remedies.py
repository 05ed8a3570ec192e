"""What errors tell users to write instead, for what programs of NumPy, torch and Triton make them try first."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import diagnostics as errors
from written_kernels import written_kernel

HEADER = """import enum
import numpy as np
import tilewright as triton
import tilewright.language as tl
class Lazy:
    # Imports what is asked for, and fails; it shows itself no better.
    def __getattr__(self, name):
        raise AttributeError(name) if name.startswith("_") else ImportError(name)
    def __repr__(self):
        raise ImportError("repr")
LAZY = Lazy()
MODE = enum.Enum("Mode", ["A", "B"]).B
ARRAY = np.zeros(3)
OBJECT = object()
@triton.jit
def other(x_ptr):
    tl.store(x_ptr, 1.0)
@triton.autotune(configs=[triton.Config({"N": 16})], key=[])
@triton.jit
def tuned(x_ptr, N: tl.constexpr):
    tl.store(x_ptr, N)
@triton.jit
def kernel(x_ptr, n):
    offs = tl.arange(0, 8)
    x = tl.load(x_ptr + offs)
"""
UNSUPPORTED = errors.UnsupportedLanguageConstruct


class Torch16:
    """A type of torch, as it shows itself."""

    def __repr__(self) -> str:
        return "torch.float16"


@pytest.mark.parametrize("mode", ("cpu", "interpret"))
@pytest.mark.parametrize(
    ("line", "kind", "remedy"),
    [
        ("x = x ** 2", UNSUPPORTED, "write x * x"),
        ("x = x @ x", UNSUPPORTED, "write tl.dot(x, y)"),
        ("x = 2 @ x", UNSUPPORTED, "write tl.dot(x, y)"),
        ("x.first = 2", UNSUPPORTED, "assign to a plain name"),
        ("x = x * MODE", errors.DTypeError, "as MODE.value.value"),
        ("x = x * 'text'", errors.DTypeError, "a text can be compared"),
        ("x = x * ARRAY", errors.DTypeError, "pass an array as an argument that is not annotated tl.constexpr"),
        ("x = x * OBJECT", errors.DTypeError, "take a number that is a member of it"),
        ("x = x * x.sum", errors.DTypeError, "call it, with parentheses"),
        ("x = x * tl.make_block_ptr(x_ptr, (8,), (1,), (0,), (8,), (0,))", errors.DTypeError, "read it with tl.load"),
        ("x = x * tl.make_tensor_descriptor(x_ptr, (8,), (1,), (8,))", errors.DTypeError, "read a block of it, as x.load"),
        ("for _ in range(n > 2): x = x + 1", errors.DTypeError, "write an if for a condition, or make a number of it"),
        ("for _ in range(0, 5, n == n): x = x + 1", errors.DTypeError, "as condition.to(tl.int32)"),
        ("for _ in tl.range(True): x = x + 1", errors.DTypeError, "write an if for a condition"),
        ("x = x ** 3.0", UNSUPPORTED, "write x * x * x"),
        ("x = x ** 0.5", UNSUPPORTED, "write tl.sqrt(x)"),
        ("x = x ** x", UNSUPPORTED, "write tl.extra.libdevice.pow(x, y)"),
        ("x = 2 ** x", UNSUPPORTED, "write tl.extra.libdevice.pow(x, y)"),
        ("x_ptr[offs] = x", UNSUPPORTED, "a pointer is no array: write tl.store(x_ptr + offs, value)"),
        ("x_ptr[offs] += x", (UNSUPPORTED, errors.ShapeError), "a pointer is no array: write tl.store(x_ptr + offs, value)"),
        ("x[0] = 1.0", UNSUPPORTED, "a tile changes as a whole: write x = tl.where(condition, value, x)"),
        ("x = x_ptr[offs]", errors.ShapeError, "a pointer is no array: write tl.load(x_ptr + offs)"),
        ("x = tl.max(x, x)", errors.ArgumentError, "of two values, write tl.maximum(x, y)"),
        ("x = tl.min(x, 0.0)", errors.ArgumentError, "of two values, write tl.minimum(x, y)"),
        ("other[(1,)](x_ptr)", UNSUPPORTED, "call it without a grid, as other(…)"),
        ("tuned(x_ptr)", UNSUPPORTED, "call a function that has @triton.jit alone"),
        ("tl.store(x_ptr + offs, x_ptr + offs)", errors.DTypeError, "did you forget tl.load?"),
        ("for i in range(offs): pass", errors.DTypeError, "a bound is one number: take one, as with tl.max(x, axis=0)"),
        ("x = tl.arange(0, 2.5)", errors.ArgumentError, "a parameter that is annotated tl.constexpr"),
        ("x = tl.arange(8, 8)", errors.ArgumentError, "it counts from 8 to 8 - 1: write tl.arange(0, BLOCK)"),
        ("x = tl.arange(2 ** 31, 2 ** 31 + 8)", errors.ArgumentError, "add the rest to it: start + tl.arange(0, BLOCK)"),
        ("x = tl.zeros((None,), tl.int32)", errors.DTypeError, "a parameter that is annotated tl.constexpr"),
        ("x = tl.program_id(3)", errors.ArgumentError, "write tl.program_id(0)"),
        ("x = tl.permute(x[None, :], (0, 0))", errors.ShapeError, "name each of the axes 0, 1 once"),
        ("x = tl.trans(n)", errors.ShapeError, "give it a second one, as x[None, :]"),
        ("x = x_ptr > n", errors.DTypeError, "did you forget tl.load?"),
        ("x = x & x", errors.DTypeError, "the bits of a float are x.to(tl.int32, bitcast=True)"),
        ("x = n // 0", errors.DTypeError, "leave the line out where this is 0"),
        ("x = ~x", errors.DTypeError, "write -x for the negative"),
        ("x = tl.fma(n, n, n)", errors.DTypeError, "cast first, as x.to(tl.float32)"),
        ("x = n + 10 ** 30", errors.DTypeError, "write it as a float"),
        ("x = x.to(tl.int8, bitcast=True)", errors.DTypeError, "or leave bitcast out"),
        ("tl.static_assert(object())", errors.NotConstexprError, "tl.device_assert tests at run time"),
        ("p = tl.make_block_ptr(x_ptr, (n, n), (n, 1), (x, 0), (4, 4), (1, 0))", errors.DTypeError, "an integer for each axis"),
        ("p = tl.make_block_ptr(x_ptr, (n, n), (n, 1), (0,), (4, 4), (1, 0))", errors.ArgumentError, "write each as (row, 0)"),
        ("p = tl.make_block_ptr(x_ptr, (n, n), (n, 1), (0, 0), (4, 4), (1, 1))", errors.ArgumentError, "as (1, 0)"),
        ("x = tl.load(x_ptr + offs, cache_modifier=object())", errors.ArgumentError, "one of '.ca', '.cg'"),
        ("x = x.to(np.float32)", errors.DTypeError, "write tl.float32"),
        ("x = tl.zeros((8,), np.dtype('int16'))", errors.DTypeError, "write tl.int16"),
    ],
)  # fmt: skip
def test_remedies(
    tmp_path: Path, line: str, kind: Any, remedy: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(kind) as caught:
        written_kernel(tmp_path / "tried.py", HEADER, line)[(1,)](np.zeros(8, np.float32), 3)
    if mode == "interpret":  # which knows no names: Python has looked them up
        remedy = remedy.partition(" (x_ptr")[0].partition("tl.store(x_ptr")[0].partition("tl.load(x_ptr")[0]
    assert remedy in caught.value.remedy and "tried.py:" in str(caught.value) and "^" in str(caught.value)
    assert " at 0x" not in str(caught.value)  # an address, which differs from run to run


@pytest.mark.parametrize(
    ("line", "kind", "remedy"),
    [
        ("x = tl.reduce_or(x, 0)", errors.DTypeError, "cast the tile, as x.to(tl.int32)"),
        ("x = tl.reduce(x, 0, max)", errors.ArgumentError, "define it so: it takes two values and returns one"),
        ("tl.reduce((x, tl.arange(0, 4)), 0, other)", errors.ArgumentError, "broadcast them first, as with tl.broadcast(x, y)"),
        ("x = tl.broadcast_to(x, (4, 4))", errors.ShapeError, "x[:, None] and x[None, :] add an axis of side 1"),
        ("x = tl.reshape(x, (4, 4))", errors.ShapeError, "the sides multiply to 8"),
        ("x = tl.squeeze(x, 0)", errors.ShapeError, "reduce the axis, as with tl.sum(x, axis)"),
        ("x = tl.load(x_ptr, mask=n < 3, other=x)", errors.ShapeError, "give it that shape, or one number for all elements"),
        ("for i in range(): pass", errors.ArgumentError, "write range(start, stop, step)"),
        ("for i in range(0, 8, 0): pass", errors.ArgumentError, "write 1, or leave it out"),
        ("for i in tl.range(8, num_stages=object()): pass", errors.ArgumentError, "write num_stages=2"),
        ("for i in tl.static_range(2.5): pass", errors.DTypeError, "a parameter that is annotated tl.constexpr"),
        ("for i in tl.static_range(10 ** 30): pass", UNSUPPORTED, "use range"),
        ("x = n(3)", UNSUPPORTED, "or write * for a product"),
        ("x = int('a')", UNSUPPORTED, "called while the kernel is translated"),
        ("x, y = 1, 2, 3", errors.DTypeError, "write as many names as there are values"),
        ("x = None + 1", errors.DTypeError, "a function that returns nothing has the value None"),
        ("x = tl.float32 * 2", errors.DTypeError, "a type is no value"),
        ("x = -tl.sum", errors.DTypeError, "call it, with parentheses"),
        ("x = 1 // 0", errors.DTypeError, "test the numbers first, with tl.static_assert"),
        ("x = 1 in 2", errors.DTypeError, "look it up in a tuple"),
        ("x = 1 < None", errors.DTypeError, "test with `is None`"),
        ("x = (1, 2).shape", errors.UnknownNameError, "take its items by their numbers, as x[0]"),
        ("x = (3).to(tl.int32)", errors.UnknownNameError, "write tl.to_tensor(x).to"),
        ("x = (3).load(x_ptr)", errors.UnknownNameError, "write tl.load"),
        ("x = (3).bit_lenght()", errors.UnknownNameError, "did you mean bit_length?"),
        ("x = x.to.shape", errors.UnknownNameError, "call it, with parentheses"),
        ("x = LAZY.member", UNSUPPORTED, "read it outside of the kernel"),
        ("x = x + LAZY", errors.DTypeError, "take a number that is a member of it"),
        ("m: tl.constexpr = 3; m: tl.constexpr = 4", errors.DTypeError, "give each a name of its own"),
    ],
)  # fmt: skip
def test_remedies_of_the_translator(
    tmp_path: Path, line: str, kind: Any, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    with pytest.raises(kind) as caught:
        written_kernel(tmp_path / "tried.py", HEADER, line)[(1,)](np.zeros(8, np.float32), 3)
    assert remedy in caught.value.remedy and "tried.py:" in str(caught.value) and "^" in str(caught.value)


def test_types_of_torch() -> None:
    from tilewright.language.hints import element_type

    with pytest.raises(errors.DTypeError) as caught:
        element_type(Torch16())
    assert caught.value.remedy == "write tl.float16"


def test_a_breakpoint_stops_in_no_code_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    with pytest.raises(UNSUPPORTED) as caught:
        written_kernel(tmp_path / "tried.py", HEADER, "breakpoint()")[(1,)](np.zeros(8, np.float32), 3)
    assert "TILEWRIGHT_MODE=interpret" in caught.value.remedy


@triton.jit
def powers(x_ptr):
    x = tl.load(x_ptr)
    tl.store(x_ptr, tl.extra.libdevice.pow(x, 3.0) + x * x)


def test_what_the_remedies_say_can_be_written(run_everywhere: Any) -> None:
    assert run_everywhere(powers, (1,), np.full(1, -2, np.float32))[0].tolist() == [-4]


@triton.jit
def sized(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)


@pytest.mark.parametrize(
    "launched",
    [
        lambda x: sized[(1,)](x, BLOK=8),
        lambda x: sized[(1,)](x, blocks=8),
        lambda x: triton.autotune(configs=[triton.Config({"BLOK": 8})], key=[])(sized)[(1,)](x),
        lambda x: triton.heuristics({"BLOK": lambda values: 8})(sized)[(1,)](x),
    ],
    ids=("launch", "other case", "config", "heuristic"),
)
@pytest.mark.parametrize("mode", ("cpu", "interpret"))
def test_misspelled_parameters(launched: Any, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    said = "specified but unrecognised; did you mean BLOCK[?] sized has the parameters x_ptr, BLOCK"
    with pytest.raises(errors.UnknownArgumentError, match=said):
        launched(np.zeros(8, np.float32))


def test_parts_of_tuples_are_called_as_the_user_writes_them(tmp_path: Path) -> None:
    lines = "t = (n, 1)\nfor i in range(n):\n    t = (n, 1.5)\ntl.store(x_ptr, t[1])"
    with pytest.raises(errors.DTypeError, match=r"t\[1\] is of type i32, but of type fp32 in the loop") as caught:
        written_kernel(tmp_path / "tried.py", HEADER, lines).translate("*fp32, i32")
    assert "give t[1] one type" in caught.value.remedy


def test_a_type_in_a_signature_where_a_value_stands() -> None:
    with pytest.raises(errors.CompilationError) as caught:
        sized.translate("*fp32, i32")
    assert "argument 2, BLOCK, is that type" in caught.value.remedy


@triton.jit
def made_of_types(x_ptr, A: tl.constexpr, B: tl.constexpr):
    tl.store(x_ptr, tl.full((), B, tl.float32))


def test_a_type_is_not_taken_for_one_whose_name_begins_alike() -> None:
    with pytest.raises(errors.CompilationError) as caught:
        made_of_types.translate("*fp32, i1, i16")
    assert "argument 3, B, is that type" in caught.value.remedy
    assert "argument 2" not in caught.value.remedy
    with pytest.raises(errors.CompilationError) as caught:
        made_of_types.translate("*fp32, i16, i16")
    assert caught.value.remedy.count("a signature has the number") == 1
    assert "each of the arguments 2, A; 3, B is that type" in caught.value.remedy


@pytest.mark.parametrize("mode", ("cpu", "interpret"))
def test_results_in_arrays_of_jax(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = pytest.importorskip("jax.numpy")
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(errors.ArgumentKindError, match="have tilewright.jax.call make the result"):
        sized[(1,)](numbers.zeros(8), 8)


@pytest.mark.parametrize(
    ("decorated", "kind", "said"),
    [
        (lambda: triton.jit(None), errors.NoSourceError, "a function written with def, not None"),
        (lambda: triton.jit(foo=1)(sized.fn), errors.UnknownOptionError, "@jit has no option foo; it has version"),
        (
            lambda: triton.autotune(configs=[], key=[], grid=(1,))(sized),  # type: ignore[call-arg]
            errors.UnknownOptionError,
            "@autotune has no option grid; it has configs, key, prune_configs_by",
        ),
        (
            lambda: triton.Config({}, num_warp=8),  # type: ignore[call-arg]
            errors.UnknownOptionError,
            "triton.Config has no option num_warp; did you mean num_warps[?] it has kwargs, num_warps",
        ),
        (
            lambda: triton.heuristics({}, key=[])(sized),  # type: ignore[call-arg]
            errors.UnknownOptionError,
            "@heuristics has no option key; it has values",
        ),
        (
            lambda: triton.autotune(configs=[{"BLOCK": 8}], key=[])(sized),  # type: ignore[list-item]
            errors.AutotunerError,
            r"which is no triton.Config; write triton.Config\(\{'BLOCK': 8\}\)",
        ),
        (
            lambda: triton.autotune(
                configs=[triton.Config({"BLOCK": 8}), triton.Config({"BLOCK": 4})],
                key=[],
                do_bench=lambda *a, **k: None,
            )(sized)[(1,)](np.zeros(8, np.float32)),
            errors.AutotunerError,
            "do_bench of autotune returned None; it must return milliseconds",
        ),
    ],
    ids=(
        "nothing",
        "option",
        "no option of autotune",
        "no option of Config",
        "no option of heuristics",
        "config",
        "do_bench",
    ),
)
def test_decorators(decorated: Any, kind: type[Exception], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    with pytest.raises(kind, match=said):
        decorated()


ERRORS = {
    name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, errors.CompilationError)
}
# What says itself what to do, or that no text of a kernel's leads to.
NO_REMEDY = {("builtins_debug.py", "CompileTimeAssertionFailure"), ("debugging.py", "CompileTimeAssertionFailure"),
             ("spell.py", "CompilationError")}  # fmt: skip


def test_every_error_about_a_kernels_text_says_what_to_write_instead() -> None:
    found = set()
    for path in (Path(__file__).parents[2] / "translator").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in ERRORS:
                continue
            named = [keyword.value for keyword in node.keywords if keyword.arg == "remedy"]
            remedy = node.args[2] if len(node.args) > 2 else (named or [ast.Constant("")])[0]
            if isinstance(remedy, ast.Constant) and not remedy.value:
                found.add((path.name, node.func.id))
    assert found == NO_REMEDY


@pytest.mark.parametrize("mode", ("cpu", "interpret"))
@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("y = x.shap", "did you mean shape?"),
        ("y = x.arange", "it is no method but a function: write tl.arange(...)"),
        ("y = np.floot32", "did you mean float32?"),
        ("y = x.zzzz", "it has shape, dtype, type, T, to, and the functions of tl that take a tile first"),
        ("y = tl.store(x_ptr, 1.0).zzzz", "a function that returns nothing has the value None"),
        ("y = x.to('float23')", "write tl.float32"),
        ("y = x.to('zzzz')", "write one of tl's types"),
        ("y = x.cumsum(0)", "sum up to each element: tl.sum(tl.where("),
        ("t = (n, 1)[5]", "the items of a tuple are counted from 0"),
        ("x = tl.broadcast_to(x, [4, 8])", "a side is the same in both or 1"),
        ("x = tl.reshape(x, [7])", "the sides multiply to 8"),
        ("x = tl.sum(n, axis=0)", "a scalar is its own sum and maximum"),
        ("x = tl.xor_sum(x, axis=0)", "cast the tile, as x.to(tl.int32)"),
    ],
)  # fmt: skip
def test_remedies_wherever_a_kernel_is_run(
    line: str, remedy: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    kernel = written_kernel(tmp_path / "tried.py", HEADER, f"{line}\ntl.store(x_ptr + offs, x)")
    with pytest.raises(errors.CompilationError) as caught:
        kernel[(1,)](np.zeros(8, np.float32), 5)
    assert f"  help: {remedy}" in str(caught.value)
