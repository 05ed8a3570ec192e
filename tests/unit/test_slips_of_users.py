"""Slips of users and adventurous programs: an error that names the line, or what Python means, in all ways to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import diagnostics as errors
from written_kernels import written_kernel

HEADER = """import math
import numpy as np
import tilewright as triton
import tilewright.language as tl
SCALE = np.float32(0.5)
@triton.jit
def both(a, b: tl.constexpr):
    return a, b
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
"""


def kernel_of(tmp_path: Path, body: str) -> Any:
    """The kernel with this body."""
    return written_kernel(tmp_path / "slip.py", HEADER, body)


@pytest.mark.parametrize("mode", ("cpu", "interpret"))
@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ("i = tl.arange(0, 2 ** 21)\ntl.store(x_ptr + i, i)", errors.ShapeError, "at most 1048576"),
        ("z = tl.zeros((2048, 1024), tl.int8)\ntl.store(x_ptr, tl.sum(z))", errors.ShapeError, "at most 1048576"),
        (
            "i = tl.arange(0, 4096)\ntl.store(x_ptr, tl.sum(tl.sum(i[:, None] + i[None, :], 0), 0))",
            errors.ShapeError,
            "at most 1048576",
        ),
        ("tl.store(x_ptr, tl.load(x_ptr, mask='a'))", errors.DTypeError, "a mask is a condition"),
        ("tl.store(x_ptr, 1.0, mask=1.5)", errors.DTypeError, "a mask is a condition"),
        ("tl.store(x_ptr, np.exp(tl.load(x_ptr)))", errors.UnsupportedLanguageConstruct, "write tl.exp"),
        ("tl.store(x_ptr, math.exp(tl.load(x_ptr)))", errors.UnsupportedLanguageConstruct, "write tl.exp"),
        ("tl.store(x_ptr, triton.cdiv(n, 8))", errors.UnsupportedLanguageConstruct, "write tl.cdiv"),
        ("tl.store(x_ptr, int(n))", errors.UnsupportedLanguageConstruct, r"convert with x.to\(tl.int32\)"),
        ("tl.store(x_ptr, tl.float16(n))", errors.UnsupportedLanguageConstruct, r"convert with x.to\(tl.float16\)"),
        ("p = tl.cast(x_ptr, tl.pointer_type(tl.exp))", errors.UnsupportedLanguageConstruct, "points to elements"),
        ("tl.store(x_ptr, tl.arange(8))", errors.ArgumentError, r"the signature is tl.arange\(start, end\)"),
        ("t = tl.permute(tl.zeros((2, 4), tl.int8), (0, 'a'))", errors.ArgumentError, "axis 'a' of a tile of rank 2"),
        ("t = tl.permute(tl.zeros((2, 4), tl.int8), (0, 3))", errors.ArgumentError, "axis 3 of a tile of rank 2"),
        ("t = tl.sum(tl.arange(0, 8), axis=True)", errors.ArgumentError, "axis True of a tile of rank 1"),
        ("t = tl.load(x_ptr + (n).T + tl.arange(0, 8))", errors.ShapeError, "there are no two axes to exchange"),
        ("t = tl.arange(0, 8).T", errors.ShapeError, "there are no two axes to exchange"),
        ("tl.store(x_ptr, tl.load(x_ptr).to(tl.void))", errors.DTypeError, "no value has the type tl.void"),
        ("t = tl.load(x_ptr).to(tl.float16, object())", errors.DTypeError, "'rtz', not an object of type object"),
        ("tl.store(x_ptr, n // 0)", errors.DTypeError, "division of an integer by zero"),
        ("tl.store(x_ptr, n % 0)", errors.DTypeError, "division of an integer by zero"),
        ("tl.store(x_ptr, n << 40)", errors.DTypeError, "a shift of i32 by 40.* a count is 0 to 31"),
        ("tl.store(x_ptr, n >> -1)", errors.DTypeError, "a shift of i32 by -1"),
        (
            "m = tl.arange(0, 8) < n,; t = tl.load(x_ptr + tl.arange(0, 8), m)",
            errors.DTypeError,
            "a mask is a condition, not a tuple\n.*\n.*\n.*a comma behind the condition makes a tuple",
        ),
        ("t = tl.arange(0, 8)[:, :, None]", errors.ShapeError, r"more : than the one axis of i32\[8\]"),
        ("t = n or tl.arange(0, 8)", errors.DTypeError, "and, or and not take conditions, not values of type i32"),
        ("t = tl.zeros((4, tl), tl.int8)", errors.DTypeError, r"not the module tl\n"),
        ("t = tl.zeros((4,), tl.sum)", errors.DTypeError, r"got tl.sum\n"),
        ("t = tl.maximum(n, tl.float16)", errors.DTypeError, r"got tl.float16\n"),
        ("t = tl.reduce(tl.arange(0, 8), 0, both)", errors.ArgumentError, "combines 1 values, but returns 2"),
        ("tl.assume(tl.arange(0, 8) >= 0)", errors.DTypeError, r"tl.assume takes .* not a tile of shape \[8\]"),
        ("t = n + None", errors.DTypeError, "expected a number or a tile, got .*None\n.*\n.*\n.*returns nothing"),
        ("t = tl.float32 * n", errors.DTypeError, "a type is no value: write tl.cast"),
        ("t = n < None", errors.DTypeError, "cannot compare a value of type i32 with .*None\n.*\n.*\n.*test with `is None`"),
        ("t = n < 'a'", errors.DTypeError, "cannot compare a value of type i32 with .*'a'\n.*\n.*\n.*numbers have an order"),
        ("t = tl.dot(n, n, trans_b=True)", errors.ArgumentError, r"out: for True write tl.dot\(x, tl.trans\(y\)\)"),
        ("t = n.to(tl.int8, mask=1)", errors.ArgumentError, r"the signature is tl.cast\(input, dtype"),
        ("t = len(n)", errors.UnsupportedLanguageConstruct, "len is a Python function"),
        ("for k in range(8, axis=0): pass", errors.ArgumentError, "no argument 'axis'\n.*\n.*\n.*it takes step, num_stages"),
        ("for k in tl.static_range(8, flatten=1): pass", errors.ArgumentError, "no argument 'flatten'"),
        ("for k in range(0, *n): pass", errors.DTypeError, "takes a tuple apart|cannot be taken apart"),
        ("n.x = 1", errors.CompilationError, "assignment to n.x|assignment to an attribute"),
        ("t = tl.load(x_ptr, mask=x_ptr)", errors.DTypeError, "not .fp32\n.*\n.*\n.*load what it points to"),
        ("for k in range(x_ptr): pass", errors.DTypeError, "load the number that a pointer points to"),
        ("t = tl.pi32_t(n)", errors.UnsupportedLanguageConstruct, r"tl.pointer_type\(tl.int32\) is called"),
        ("t = tl.tensor(n)", errors.UnsupportedLanguageConstruct, "make a tile with tl.full"),
        ("t = n.sort()", errors.UnknownNameError, "has no attribute '?sort'? yet\n.*\n.*\n  help: sort outside of"),
        ("t = both(1)", errors.ArgumentError, r"the signature is both\(a, b\)"),
        ("t = tl.arange(0, 4) < None", errors.DTypeError, r"cannot compare a value of type i32\[4\] with "),
        ("t = tl.expand_dims(tl.arange(0, 4), 3)", errors.ArgumentError, "3 is no place for .* rank 1\n.*\n.*\n.*write 0 or 1$"),
        ("t = tl.expand_dims(n, -2)", errors.ArgumentError, "-2 is no place for a new axis of a scalar\n.*\n.*\n.*write 0$"),
    ],
)  # fmt: skip
def test_slips_in_kernels(
    tmp_path: Path, body: str, kind: Any, said: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(kind, match=said) as caught:
        kernel_of(tmp_path, body)[(1,)](np.zeros(8, np.float32), 7, B=8)
    text = str(caught.value)
    assert "slip.py:" in text and "^" in text and "Const(" not in text


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("tl.store(x_ptr * 2, n)", r"\*fp32 and the compile-time value 2"),
        ("y = None\nif n > 3:\n    y = 2", "between then block .i32. and else block .the compile-time value None."),
        ("a = tl.zeros((16, 16), tl.float16)\nb = a @ a", "the operator @ is not supported"),
        ("class A: pass", "class statements cannot stand in a kernel"),
        ("for a, b in range(3): pass", "a for loop with the target a, b"),
        ("for a in range(3): pass\nelse: pass", "else of a loop"),
        ("p = tl.make_block_ptr(x_ptr, (8, 8), (8, 1), (0, 0), (4, 4), (1, None))", "permutation"),
        ("a = 3\na(4)", "a value of type i32 cannot be called"),
        ("a = 1 in B", "cannot look this up"),
        ("a = len((1, 2), (3, 4))", "len"),
        ("a = tl.uint8(3)", "tl.uint8 is a type and cannot be called"),
        ("a = tl(3)", "the module tl is called"),
        ("a = tl.static_range(n)", "stands in the head of a for loop only"),
        ("offset = 3\ny = offsets", "help: did you mean offset"),
        ("offset = 3\ny = offsets\noffsets = 4", "offsets is not defined\n.*\n.*\n.*help: define it before"),
        ("y = t", "t is not defined\n.*\n.*\n.*help: define it before"),  # not `tl`
        ("y = n.clamp(1, 2)", r"no attribute clamp\n.*\n.*\n.*no method but a function: write tl.clamp\("),
        ("if n > 3:\n    B = 16\nelse:\n    B = 32", "a constexpr cannot follow a condition that is known at run time"),
        (
            "for i in range(3):\n    n = tl\ny = n",
            "assigns what no variable of the loop can hold .*\n.*\n.*\n.*another name",
        ),
        (
            "for i in range(3):\n    n = (n, 1)",
            "n changes its form in the loop: it is a value of type i32 and a tuple of 2",
        ),
    ],
)
def test_what_errors_say_of_values(tmp_path: Path, body: str, said: str) -> None:
    with pytest.raises(errors.CompilationError, match=said) as caught:
        kernel_of(tmp_path, body).translate("*fp32, i32, 8")
    text = str(caught.value)
    assert "slip.py:" in text and "^" in text and "Const(" not in text


@triton.jit
def two(x_ptr, d):
    tl.store(x_ptr, 1)


@pytest.mark.parametrize(
    ("signature", "said", "marked"),
    [
        ("*fp32, tensordesc<fp16[0, 8]>", "a side of a block is 1 or more, not 0", "0"),
        ("*fp32, tensordesc<i8[1, 1, 1, 1, 1, 16]>", "Expected 1 <= ndim <= 5 but got 6", "1, 1, 1, 1, 1, 16"),
        ("*fp32, tensordesc<fp16[8, 4]>", "at least 16 bytes in the last dimension, but got 4 [*] 2", "8, 4"),
        ("*fp32, tensordesc<fp16[4, 8]", "< is not closed .* write > behind", "<"),
        ("*fp32, tensordesc<fp16[4,, 8]>", "expected a descriptor such as", "tensordesc<fp16[4,, 8]>"),
        ("*fp32, i32]", "] closes nothing", "]"),
        ("*fp32, 'relu", "a string in the signature has no end", "'relu"),
        ("*fp32,  i33", "entry 2 of the signature .d.: expected a type", "i33"),
        ("*fp32, i32:32", "after the colon stands 16, 8, 4, 2 or 1, not '32'", "32"),
        ("*fp32:8, i32", "only an integer can be a multiple of 8", "8"),
        ("*fp32, fp32:2", "only an integer can be a multiple of 2", "2"),
        ("*fp32, (i32, (i33,))", "expected a type .* if d is a compile-time value", "i33"),
    ],
)
def test_signatures_show_where(signature: str, said: str, marked: str) -> None:
    with pytest.raises(errors.SignatureError, match=said) as caught:
        two.translate(signature)
    line, carets = str(caught.value).split("\n")[1:]
    start = carets.index("^")
    assert line == f"    {signature}" and line[start : start + carets.count("^")] == marked


def test_entries_that_nest_too_deep() -> None:
    for value in ("-" * 5000 + "1", "[" * 5000 + "]" * 5000):
        with pytest.raises(errors.SignatureError, match="expected the value of a compile-time parameter"):
            plain.translate(f"*fp32, i32, {value}")


def test_names_that_are_none() -> None:
    name: Any
    for name in (5, "a b", b"kernel"):
        with pytest.raises(errors.SignatureError, match="a kernel's name is letters, digits and underscores, not"):
            plain.translate("*fp32, i32, 8", name=name)


def test_strings_in_signatures() -> None:
    for value in ("'a, b'", "'it\\'s, <'", '"[("', "('a,', ((1,), 2))"):
        assert plain.translate(f"*fp32, i32, {value}").parameters


@triton.jit
def plain_words(x_ptr, n, /, B: tl.constexpr, *, SCALE: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x_ptr + i, +tl.load(x_ptr + i) * SCALE + n)


def test_numbers_of_numpy_and_parameters_by_position(run_everywhere: Any) -> None:
    scale: Any = np.float32(0.5)
    (x,) = run_everywhere(plain_words, (1,), np.arange(8, dtype=np.float32), 3, B=np.int64(8), SCALE=scale)
    np.testing.assert_array_equal(x, np.arange(8) * 0.5 + 3)


HALF, THREE, IS_ON, SIDES = np.float32(0.5), np.int64(3), np.bool_(True), {"sides": [np.int32(8), np.float16(2)]}


def doubled(number: Any) -> Any:
    return np.float32(2 * number)


class Numbers:
    half = np.float32(0.5)


@triton.jit
def globals_of_numpy(x_ptr):
    i = tl.arange(0, SIDES["sides"][0])
    x = HALF * tl.load(x_ptr + i) + THREE + doubled(HALF) + Numbers.half
    offset = THREE
    if IS_ON:
        tl.store(x_ptr + i, tl.where(i < offset, x, tl.full([8], SIDES["sides"][1], tl.float32)))


def test_globals_that_are_numbers_of_numpy(run_everywhere: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):  # the second launch compares what the first one read
        (x,) = run_everywhere(globals_of_numpy, (1,), np.arange(8, dtype=np.float32))
        assert x.tolist() == [4.5, 5, 5.5, 2, 2, 2, 2, 2]
    monkeypatch.setitem(globals(), "HALF", np.float32(0.25))
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    with pytest.raises(errors.GlobalChangedError, match="HALF has changed"):
        globals_of_numpy[(1,)](np.zeros(8, np.float32))


@triton.jit
def many_axes(x_ptr):
    i = tl.arange(0, 2)[:, None, None, None, None, None, None, None, None]
    tl.store(x_ptr + i, i + 1)


def test_nine_axes(run_everywhere: Any) -> None:
    (x,) = run_everywhere(many_axes, (1,), np.zeros(2, np.int32))
    assert x.tolist() == [1, 2]


HALVES = "a = tl.zeros((16, 16), tl.float16)\n"


@pytest.mark.parametrize("mode", ("cpu", "interpret"))
@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ("tl.store(x_ptr, tl.minimum(tl.load(x_ptr), n, 3))", errors.ArgumentError, "must be a tl.PropagateNan, not 3"),
        ("tl.store(x_ptr, tl.maximum(n, 2, n=3))", errors.ArgumentError, "the signature is tl.maximum"),
        (
            f"{HALVES}tl.store(x_ptr, tl.max(tl.dot(a, a, out_dtype=tl.int32)))",
            errors.DTypeError,
            "computed in float32",
        ),
        (
            f"{HALVES}tl.store(x_ptr, tl.max(tl.dot(a, a, out_dtype=tl.float64)))",
            errors.DTypeError,
            "out_dtype=float64",
        ),
    ],
)
def test_what_had_another_meaning(
    tmp_path: Path, body: str, kind: type[Exception], said: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(kind, match=said) as caught:
        kernel_of(tmp_path, body)[(1,)](np.zeros(8, np.float32), 3, B=8)
    assert "slip.py:" in str(caught.value) and "help:" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"num_ctas": 0}, "num_ctas must be a positive integer, not 0"),
        ({"warp_size": 64}, "warp_size must be 32"),
        ({"debug": "yes"}, "debug must be True or False, not 'yes'"),
        ({"launch_pdl": 2}, "launch_pdl must be True or False, not 2"),
    ],
)
def test_options_that_no_launch_has(options: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    with pytest.raises(errors.OptionError, match=said):
        many_axes[(1,)](np.zeros(2, np.int32), **options)


def test_parameters_that_a_kernel_does_not_have() -> None:
    for given in ("zz", 1):
        said = f"many_axes has no parameter {given!r}; it has x_ptr; the name is passed over"
        with pytest.warns(RuntimeWarning, match=said) as warned:
            triton.jit(do_not_specialize=[given])(many_axes.fn)
        assert warned[0].filename == __file__


def test_the_title_has_the_name_of_the_text() -> None:
    text = many_axes.translate("*i32", name="int").source
    assert text.startswith("// int_kernel: generated by") and "int_kernel(int*" in text


@triton.jit
def as_bits(x_ptr, y_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    bits = x_ptr.to(tl.pointer_type(tl.int32))
    chosen = tl.where(i < n, x_ptr + i, y_ptr + i).to(tl.pointer_type(tl.int32))
    tl.store(y_ptr + B, 1.0)
    tl.store(out_ptr + i, tl.load(bits + i) + tl.load(chosen))


def test_what_is_only_read_is_read_as_another_type(run_everywhere: Any) -> None:
    x, y = np.arange(8, dtype=np.float32), np.ones(9, np.float32)
    found = run_everywhere(as_bits, (1,), x, y, np.zeros(8, np.int32), 4, B=8)[2]
    bits = x.view(np.int32)
    np.testing.assert_array_equal(found, bits + np.where(np.arange(8) < 4, bits, y[:8].view(np.int32)))


@triton.jit
def forgotten_product(a_ptr, b_ptr, out_ptr, K, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        a = tl.load(a_ptr + i[:, None] * K + k + i[None, :])
        b = tl.load(b_ptr + (k + i[:, None]) * B + i[None, :])
        total = tl.dot(a, b, total)
    tl.store(out_ptr, K)


@pytest.mark.parametrize("arch", ("sm_80", "sm_90a"))
@pytest.mark.parametrize("signature", ("*fp16:16, *fp16:16, *i32, i32:16, 32", "*fp16, *fp16, *i32, i32, 32"))
def test_a_product_that_is_not_stored(signature: str, arch: str) -> None:
    assert "mma" not in forgotten_product.translate(signature, arch=arch).source


@triton.jit
def one_of_two(a_ptr, b_ptr, c_ptr, n, S: tl.constexpr):
    # Nothing depends on the second sum, and its operand serves nothing else.
    i = tl.arange(0, S)
    places = i[:, None] * S + i[None, :]
    a, b = tl.load(a_ptr + places), tl.load(b_ptr + places)
    kept, lost = tl.zeros((S, S), tl.int32), tl.zeros((S, S), tl.int32)
    for _ in range(n):
        kept = tl.dot(a, a, kept)
        lost = tl.dot(a, tl.where(i[:, None] >= i[None, :], b.to(tl.float32), 0).to(tl.int8), lost)
        lost = tl.dot(a, tl.trans(b), lost)
    tl.store(c_ptr + places, kept)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("side", [16, 64])
def test_sums_of_which_one_is_not_stored(side: int, arch: str) -> None:
    text = one_of_two.translate(f"*i8:16, *i8:16, *i32:16, i32, {side}", arch=arch).source
    assert "int lost[" not in text and "int kept[" in text


# ------------------------------------------------------------------------------------------------------- arguments


class Told:
    """An array of four numbers with an interface alone, in which some entries are others or none."""

    memory = np.zeros(4, np.float32)

    def __init__(self, **entries: Any) -> None:
        whole = {**self.memory.__array_interface__, **entries}
        self.__array_interface__ = {name: entry for name, entry in whole.items() if entry is not None}


class NamedAddress:
    """An address that is a text."""

    dtype = "float32"

    def data_ptr(self) -> str:
        return "here"


@triton.jit
def plain(x_ptr, n, B: tl.constexpr):
    tl.store(x_ptr, n)


@pytest.mark.parametrize("mode", ("cpu", "interpret"))
@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({0: Told(data=None)}, {}, "without data, shape or typestr"),
        ({0: Told(shape=None)}, {}, "without data, shape or typestr"),
        ({0: Told(typestr=4)}, {}, "without data, shape or typestr"),
        ({0: Told(typestr=">f4")}, {}, "argument x_ptr: arrays of >f4 cannot be passed"),
        ({0: NamedAddress()}, {}, "the address 'here'"),
        ({1: np.datetime64("2020")}, {}, "argument n"),
        ({1: np.str_("x")}, {}, "argument n"),
        ({1: 10**400}, {}, r"argument n is 10+\.\.\., which does not fit"),
        ({2: np.zeros(3, np.float32)}, {}, "argument B is an array, but B is annotated tl.constexpr"),
        ({}, {"num_wraps": 4}, "num_wraps was specified but unrecognised; did you mean num_warps"),
        ({}, {"grid": (1,)}, "grid was specified but unrecognised"),
        ({1: None, 2: 4, 3: 5}, {}, "too many positional arguments"),
    ],
)
def test_arguments_that_are_none_of_a_kernels(
    change: dict[int, Any], options: dict[str, Any], said: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    arguments = [change.get(number, given) for number, given in enumerate((np.zeros(4, np.float32), 3, 4))]
    with pytest.raises(errors.LaunchError, match=said):
        plain[(1,)](*arguments, *(value for number, value in change.items() if number > 2), **options)


def test_a_grid_that_takes_no_dict() -> None:
    with pytest.raises(errors.GridError, match="a function of the dict of all arguments"):
        plain[lambda: (1,)](np.zeros(4, np.float32), 3, 4)


@pytest.mark.parametrize(("signature", "said"), [("*fp32, void, 4", "expected a type"), ("*fp32, i32:16", "2 entries")])
def test_signatures_with_a_slip(signature: str, said: str) -> None:
    with pytest.raises(errors.SignatureError, match=said):
        plain.translate(signature)
    with pytest.raises(errors.SignatureError, match="unknown architecture"):
        plain.translate("*fp32, i32, 4", arch=90)


@triton.jit
def told(x_ptr, n):
    tl.device_print('a"b\n50% ??/ \\   // c', n)
    tl.device_print("", n)
    tl.device_assert(n > 10, 'not 50% "of"\nit')


@pytest.mark.parametrize("mode", ("cpu", "interpret"))
def test_texts_that_are_not_plain(
    mode: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(errors.KernelFaultError):
        told[(1,)](np.zeros(1, np.float32), 7, debug=True, num_warps=1)
    shown = capfd.readouterr().out
    assert shown.startswith('pid (0, 0, 0) idx () a"b\n50% ??/ \\   // c: 7\npid')
    assert "\npid (0, 0, 0) idx (): 7\n" in shown
