"""Bad input: each kind gives an error class of ours, with the place, the cause and the remedy."""

from __future__ import annotations

import os
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import diagnostics as errors
from tilewright.cli import main

X = np.zeros(64, np.float32)


@triton.jit
def unsupported_statement(x_ptr):
    for i in range(3):
        break


@triton.jit
def unknown_name(x_ptr):
    tl.store(x_ptr, tl.expp(1.0))


@triton.jit
def not_yet(x_ptr):
    tl.store(x_ptr + tl.arange(0, 4), tl.cumsum(tl.arange(0, 4), 0))


@triton.jit
def shape_mismatch(x_ptr):
    y = tl.arange(0, 8) + tl.arange(0, 16)
    tl.store(x_ptr + y, y)


@triton.jit
def dtype_misuse(x_ptr):
    x = tl.load(x_ptr).to(tl.float16)
    tl.store(x_ptr, tl.exp(x))


@triton.jit
def one_branch(x_ptr, n):
    if n > 3:
        y = 1.0
    tl.store(x_ptr, y)


@triton.jit
def no_constexpr(x_ptr, n):
    tl.store(x_ptr + tl.arange(0, n), 0.0)


@triton.jit
def carried(x_ptr, n):
    acc = 0
    for i in range(n):
        acc += 1.5
    tl.store(x_ptr, acc)


@triton.jit
def tile_condition(x_ptr, n):
    if tl.arange(0, 8) < n:
        tl.store(x_ptr, 1.0)


@triton.jit
def static_assertion(x_ptr, B: tl.constexpr):
    tl.static_assert(B > 3, "B is too small")


@triton.jit
def other_without_mask(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr, other=1.0))


def plain_function(x):
    return x


@triton.jit
def plain_call(x_ptr):
    tl.store(x_ptr, plain_function(tl.load(x_ptr)))


@triton.jit
def too_much_shared(x_ptr, B: tl.constexpr):
    i, j = tl.arange(0, B), tl.arange(0, B)
    x = tl.load(x_ptr + i[:, None] * B + j[None, :])
    y = tl.load(x_ptr + j[:, None] + i[None, :] * B)
    tl.store(x_ptr + i[:, None] * B + j[None, :], x.T + x + y)


@triton.jit
def product(x_ptr, out_ptr, K, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        x = tl.load(x_ptr + i[:, None] * K + (k + i)[None, :])
        total += tl.dot(x, x)
    tl.store(out_ptr + i[:, None] * B + i[None, :], total)


SPAN = errors.Span("k.py", 3, 4, 3, 5, "    x")
CASES = [
    (unsupported_statement, (X, ), {}, errors.UnsupportedLanguageConstruct, "break", "Break"),
    (unknown_name, (X,), {}, errors.UnknownNameError, "tl.expp", "did you mean tl.exp"),
    (not_yet, (X,), {}, errors.UnknownNameError, "tl.cumsum", "not supported yet; sum up to each element: tl.sum("),
    (shape_mismatch, (X,), {}, errors.ShapeError, "tl.arange(0, 8) + tl.arange(0, 16)", "8 and 16"),
    (dtype_misuse, (X,), {}, errors.DTypeError, "tl.exp(x)", "fp16"),
    (one_branch, (X, 7), {}, errors.UndefinedVariableError, "y", "only one branch"),
    (no_constexpr, (X, 7), {}, errors.NotConstexprError, "tl.arange(0, n)", "tl.constexpr"),
    (carried, (X, 7), {}, errors.DTypeError, "for i in range(n):", "re-assigned to fp32"),
    (tile_condition, (X, 7), {}, errors.DTypeError, "tl.arange(0, 8) < n", "ambiguous"),
    (static_assertion, (X,), {"B": 2}, errors.CompileTimeAssertionFailure, 'tl.static_assert(B > 3, "B is too small")',
     "B is too small"),
    (other_without_mask, (X,), {}, errors.ArgumentError, "tl.load(x_ptr, other=1.0)", "without `mask`"),
    (plain_call, (X,), {}, errors.UnsupportedLanguageConstruct, "plain_function(tl.load(x_ptr))", "@triton.jit"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kernel", "args", "options", "kind", "marked", "said"), CASES, ids=lambda v: getattr(v, "__name__", "")
)
def test_errors_in_kernels(
    kernel: Any, args: Any, options: Any, kind: Any, marked: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    with pytest.raises(kind) as caught:
        kernel[(1,)](*args, **options)
    text = str(caught.value)
    lines = text.splitlines()
    carets = next(i for i, line in enumerate(lines) if re.fullmatch(r"\s*\^+", line))
    start, end = lines[carets].index("^"), lines[carets].rindex("^") + 1
    assert lines[carets - 1][start:end] == marked or marked.startswith(lines[carets - 1][start:end])
    assert said in text
    assert re.search(rf"{os.path.basename(__file__)}:\d+:\d+: {caught.type.__name__}: ", text)


def test_an_inlined_call_shows_how_it_was_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    with pytest.raises(errors.ShapeError, match="called from here"):
        outer[(1,)](X)


@triton.jit
def inner(x):
    return x + tl.arange(0, 3)


@triton.jit
def outer(x_ptr):
    tl.store(x_ptr + tl.arange(0, 8), inner(tl.arange(0, 8)))


def test_too_much_shared_memory_lists_the_buffers() -> None:
    with pytest.raises(errors.OutOfResources, match="x_shared") as caught:
        too_much_shared.translate("*fp32:16, 256", num_warps=32)
    assert caught.value.required > caught.value.limit and caught.value.name == "shared memory"
    place, line, carets, *arrays = str(caught.value).splitlines()
    assert re.search(rf"{os.path.basename(__file__)}:\d+:5: OutOfResources: out of resource: shared memory, ", place)
    assert line.strip() == "tl.store(x_ptr + i[:, None] * B + j[None, :], x.T + x + y)"
    assert carets.index("^") == line.index("tl.store") and carets.count("^") == len(line.strip())
    assert arrays == ["  x_shared: 262144 bytes, x on its way to other threads"]


def test_too_much_shared_memory_for_a_tile_that_is_loaded_ahead() -> None:
    """The array belongs to the tile, and the place is the statement that loads it."""
    with pytest.raises(errors.OutOfResources) as caught:
        product.translate("*fp16:16, *fp16:16, i32:16, 512", num_warps=16)
    assert caught.value.span is not None and caught.value.span.text.strip().startswith("x = tl.load(x_ptr")


@pytest.mark.parametrize("number", range(3))
def test_errors_reach_other_processes_whole(number: int) -> None:
    """As results of a pool's workers do: an error that cannot be read there hangs the pool."""
    error = (
        errors.OutOfResources(2, 1, "threads"),
        errors.OutOfResources(2, 1, "shared memory", "  x: 2 bytes", SPAN),
        errors.ShapeError("cause", SPAN, "remedy", (SPAN,)),
    )[number]
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error) and vars(again) == vars(error)


@triton.jit
def typed(x_ptr, DTYPE: tl.constexpr):
    tl.store(x_ptr, tl.load(x_ptr).to(DTYPE))


@triton.jit
def fine(x_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x_ptr + i, 1.0, mask=i < n)


@pytest.mark.parametrize(
    ("grid", "args", "options", "kind", "said"),
    [
        ((1.5,), (X, 3, 8), {}, errors.GridError, "integers"),
        ((1, 1, 1, 1), (X, 3, 8), {}, errors.GridError, "one to three"),
        ((-1,), (X, 3, 8), {}, errors.GridError, "non-negative"),
        (np.array([1, 1]), (X, 3, 8), {}, errors.GridError, "integers"),
        ((1,), (X, None, 8), {}, errors.DTypeError, "cannot compare"),
        ((1,), (X, 3, 2**31), {}, errors.ArgumentError, "32 bits"),
        ((1,), (X, 3, 8), {"num_warps": True}, errors.LaunchError, "power of 2"),
        ((1,), (X, 3, 8), {"num_stages": "3"}, errors.LaunchError, "num_stages"),
        ((1,), (X, 3, 8), {"num_stages": -1}, errors.LaunchError, "num_stages"),
        ((1,), (X, 3, 8), {"maxnreg": 0}, errors.LaunchError, "maxnreg"),
        ((1,), ("text", 3, 8), {}, errors.ArgumentKindError, "x_ptr"),
        ((1,), (object(), 3, 8), {}, errors.ArgumentKindError, "object"),
        ((1,), (X[::-1], 3, 8), {}, errors.ContiguityError, "negative strides"),
        ((1,), (np.zeros(3, np.complex64), 3, 8), {}, errors.ArgumentKindError, "complex64"),
        ((1,), (X, 3, 8), {"num_warps": 3}, errors.LaunchError, "power of 2"),
        ((1,), (X, 3, 8), {"num_warps": 64}, errors.OutOfResources, "threads"),
        ((1,), (X, 3, 8), {"bogus": 1}, KeyError, "bogus was specified but unrecognised"),
        ((1,), (X, 3), {}, TypeError, "B"),
    ],
)
def test_errors_of_launches(
    grid: Any, args: Any, options: Any, kind: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    with pytest.raises(kind, match=said):
        fine[grid](*args, **options)


def test_a_read_only_array_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    frozen = np.zeros(8, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(errors.ArgumentKindError, match="read-only"):
        fine[(1,)](frozen, 8, 8)


def test_host_arrays_cannot_run_on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "gpu")
    with pytest.raises(errors.DeviceError, match="on the CPU"):
        fine[(1,)](X, 8, 8)
    monkeypatch.setenv("TILEWRIGHT_MODE", "quantum")
    with pytest.raises(errors.LaunchError, match="quantum"):
        fine[(1,)](X, 8, 8)


def test_a_kernel_is_not_called_like_a_function() -> None:
    with pytest.raises(errors.LaunchError, match=r"fine\[grid\]"):
        fine(X, 8, 8)


def test_a_kernel_needs_a_source() -> None:
    namespace = {"triton": triton, "tl": tl}
    with pytest.raises(errors.NoSourceError, match="file"):
        exec("@triton.jit\ndef kernel(x):\n    pass\n", namespace)


@pytest.mark.parametrize(
    ("signature", "said"),
    [
        ("*fp32, i32", "2 entries"),
        ("*fp33, i32, 8", "entry 1"),
        ("*fp32:8, i32, 8", "only an integer can be a multiple of 8"),
        ("*fp32:3, i32, 8", "16, 8, 4, 2 or 1"),
        ("*fp32:1, i32, 8", "only an integer"),
        ("*fp32, i32, x8", "compile-time"),
        ("*fp32, i32, float16", "can be a type, written fp16 or tl.float16, or a string, with its quotes: 'float16'"),
    ],
)
def test_signatures(signature: str, said: str) -> None:
    with pytest.raises(errors.SignatureError, match=said):
        fine.translate(signature)


def test_types_in_a_signature_are_written_as_in_a_launch() -> None:
    found = typed.translate("*fp32, tl.float16").source
    assert "half" in found
    assert found == typed.translate("*fp32, fp16").source


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, out = f"{__file__}:fine", tmp_path / "fine.cu"
    assert main(["translate", spec, "--signature", "*fp32:16, i32, 64", "-o", str(out)]) == 0
    text = out.read_text()
    assert text == fine.translate("*fp32:16, i32, 64").source
    assert main(["translate", spec, "--signature", "*fp32, i32, 32", "-o", str(out)]) == 1
    assert "--force" in capsys.readouterr().err and out.read_text() == text
    assert main(["translate", spec, "--signature", "*fp32, i32, 32", "-o", str(out), "--force"]) == 0
    assert out.read_text() != text
    assert main(["translate", f"{__file__}:nothing", "--signature", "i32"]) == 1
    assert "has no kernel 'nothing'" in capsys.readouterr().err
    assert main(["translate", "missing.py:fine", "--signature", "i32"]) == 1
    for stage in ("kernel", "prepared", "facts", "schedule", "unit", "text"):
        assert main(["explain", spec, "--signature", "*fp32:16, i32, 64", "--after", stage]) == 0
        assert "fine" in capsys.readouterr().out or stage in ("facts", "schedule", "unit")


def test_a_damaged_cache_is_a_miss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.runtime.building import nvrtc
    from tilewright.runtime.cache import compiled

    if not nvrtc.is_available():
        pytest.skip("NVRTC is not installed")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    artifact = fine.translate("*fp32:16, i32, 64")
    first = compiled(artifact)
    (cubin,) = tmp_path.rglob("*.cubin")
    assert len(list(tmp_path.rglob("kernel.cu"))) == 1
    for damage in (cubin.read_bytes()[:100], b"", b"x" * len(first.code)):
        cubin.write_bytes(damage)
        assert compiled(artifact).code == first.code
        assert cubin.read_bytes() == first.code


def test_an_unwritable_cache_is_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(blocked / "below"))
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    x = np.zeros(8, np.float32)
    fine[(1,)](x, 8, 8)
    assert x.sum() == 8
