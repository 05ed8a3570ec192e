"""`triton.compile(ASTSource(...))`: kernels for types that are given by name."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.backends.compiler import GPUTarget
from tilewright.compiler import ASTSource, CompiledKernel
from tilewright.diagnostics import LaunchError, SignatureError
from tilewright.runtime.building import nvrtc


@triton.jit
def scaled(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * factor, mask=offsets < n)


@triton.jit
def summed(pointers, n, step, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    total = tl.load(pointers[0] + offsets) + tl.load(pointers[1] + offsets * step)
    tl.store(pointers[0] + offsets, total, mask=offsets < n)


SIGNATURE = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "factor": "fp32", "BLOCK": "constexpr"}


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")


def test_a_kernel_for_named_types() -> None:
    source = ASTSource(scaled, SIGNATURE, {"BLOCK": 64}, {(0,): [["tt.divisibility", 16]]})
    compiled = triton.compile(source, options={"num_warps": 2})
    assert isinstance(compiled, CompiledKernel) and triton.compile(source, options={"num_warps": 2}) is compiled
    assert (compiled.metadata.name, compiled.metadata.num_warps, compiled.metadata.guards) == ("scaled", 2, False)
    assert "x_ptr: const float*, 16-byte aligned; out_ptr: float*;" in compiled.source
    assert compiled.source == scaled.translate("*fp32:16, *fp32, i32, fp32, 64", num_warps=2, guards=False).source


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_another_target() -> None:
    compiled = triton.compile(ASTSource(scaled, SIGNATURE, {(4,): 64}), target=GPUTarget("cuda", 80, 32))
    assert compiled.metadata.target == "sm_80" and ".target sm_80" in compiled.asm["ptx"]
    assert compiled.asm["cubin"][:4] == b"\x7fELF"


def test_paths_name_items_of_tuples(monkeypatch: pytest.MonkeyPatch) -> None:
    attributes = {(0, 1): [["tt.divisibility", 16]]}
    signature = {"pointers": ("*fp32", "*fp32"), "n": "i32", "step": "i32"}
    source = ASTSource(summed, signature, {"BLOCK": 32, "step": 1}, attributes)
    text = triton.compile(source).source
    assert text.count("16-byte aligned") == 1 and "step" not in text[text.index("summed(") :].split(")")[0]


def test_tuples_in_the_text_of_a_signature() -> None:
    """They could be launched, and not be translated ahead of time."""
    whole = summed.translate("(*fp32:16, *fp32), i32, 1, 64")
    assert [parameter.name for parameter in whole.parameters] == ["pointers_first", "pointers_second", "n"]
    named = ASTSource(summed, {"pointers": ("*fp32", "*fp32"), "n": "i32"}, {"step": 1, "BLOCK": 64})
    named = dataclasses.replace(named, attrs={(0, 0): [["tt.divisibility", 16]]})
    assert triton.compile(named).source == whole.source


@pytest.mark.parametrize(
    ("signature", "constexprs", "message"),
    [
        ({**SIGNATURE, "m": "i32"}, {"BLOCK": 64}, "scaled has no parameter m; its parameters are x_ptr"),
        ({"x_ptr": "*fp32"}, {"BLOCK": 64}, "no type for the parameter out_ptr"),
        (SIGNATURE, {}, "no value for the compile-time parameter BLOCK"),
        ({**SIGNATURE, "n": "int"}, {"BLOCK": 64}, "the signature's entry for n: expected a type such as"),
        ({**SIGNATURE, "n": tl.int32}, {"BLOCK": 64}, "the signature's entry for n is tl.int32, no text such as"),
        ("*fp32, *fp32, i32, fp32, 64", {}, "the signature of scaled is no dict from parameters to types: '"),
    ],
)
def test_what_is_wrong_with_a_source(signature: Any, constexprs: Any, message: str) -> None:
    with pytest.raises(SignatureError, match=message):
        triton.compile(ASTSource(scaled, signature, constexprs))


def test_sources_of_other_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LaunchError, match="takes an ASTSource, not str"):
        triton.compile("kernel.ttir")
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    with pytest.raises(LaunchError, match="nothing is compiled"):
        triton.compile(ASTSource(scaled, SIGNATURE, {"BLOCK": 64}))


def test_it_runs() -> None:
    attributes = {(place,): [["tt.divisibility", 16]] for place in range(3)}
    compiled = triton.compile(ASTSource(scaled, SIGNATURE, {"BLOCK": 64}, attributes))
    memory = np.ones(2 * 256, np.float32)
    start = -memory.ctypes.data // 4 % 4
    x, out = memory[start : start + 128], memory[start + 128 : start + 256]
    compiled[(2,)](x, out, 112, 3.0, 64)
    np.testing.assert_array_equal(out, np.where(np.arange(128) < 112, 3.0, 1.0))
