"""Kernels in programs of JAX for a GPU, without one: what is traced and handed to jaxlib, behind a driver that runs nothing."""

from __future__ import annotations

import functools
import importlib.util
import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import TensorMap
from tilewright.language import dtypes
from tilewright.runtime.launching.tensor_maps import Shape

HERE = Path(__file__).resolve().parent
Fields = dict[int, list[Any]]


@pytest.fixture
def wire() -> Any:
    """The module, which is no other without JAX."""
    spec = importlib.util.spec_from_file_location("wire_alone", HERE.parents[1] / "runtime" / "jax" / "wire.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fields(message: bytes) -> Fields:
    """A message of protocol buffers by field number; nested ones stay bytes."""
    found: Fields = {}
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(message):
        key = varint()
        size = {1: 8, 5: 4}.get(key & 7)
        if key & 7 == 0:
            value: Any = varint()
        else:
            size = varint() if size is None else size
            value, place = message[place : place + size], place + size
        found.setdefault(key >> 3, []).append(value)
    return found


def packed(numbers: bytes) -> list[int]:
    """A repeated field of numbers, as the fields that its elements would be."""
    one = b"".join(b"\x08" + number for number in re.findall(rb"[\x80-\xff]*[\x00-\x7f]", numbers))
    return fields(one)[1]


def test_a_launch_is_described_as_jaxlib_s_messages_are(wire: Any) -> None:
    elements = [
        (dtypes.int32, -5), (dtypes.int64, -(2**40)), (dtypes.uint64, 2**63), (dtypes.uint8, 200), (dtypes.int8, -1),
        (dtypes.int1, True), (dtypes.float32, 1.5), (dtypes.float64, -2.5), (dtypes.float16, 1.0), (dtypes.bfloat16, b"\x80\x3f"),
    ]  # fmt: skip
    parameters = [wire.array(), *(wire.scalar(element, value) for element, value in elements)]
    launch = wire.Launch("k", b"\x7fELF", "digest", 90, 384, 200_000, (3, 4, 5), tuple(parameters))
    whole = fields(zlib.decompress(wire.opaque(launch)))
    assert whole[4] == [b"k"]
    call = fields(whole[1][0])
    assert [call[number][0] for number in (2, 3, 4)] == [3, 4, 5]
    kernel = fields(call[1][0])
    assert {n: kernel[n][0] for n in (1, 2, 3, 4, 6, 10)} == {1: b"k", 2: 12, 3: 200_000, 4: b"digest", 6: 90, 10: 1}
    assert fields(kernel[11][0]) == {1: [b"\x7fELF"], 2: [b"k"], 3: [200_000]}
    first, *numbers = [fields(parameter) for parameter in call[5]]
    assert fields(first[1][0]) == {1: [0], 2: [16]}
    assert numbers == [
        {3: [2**64 - 5]}, {5: [2**64 - 2**40]}, {6: [2**63]}, {4: [200]}, {3: [2**64 - 1]}, {2: [1]},
        {7: [struct.pack("<f", 1.5)]}, {8: [struct.pack("<d", -2.5)]}, {4: [0x3C00]}, {4: [0x3F80]},
    ]  # fmt: skip


def test_tensor_maps_count_from_the_outermost_dimension(wire: Any) -> None:
    one = TensorMap("a_map", dtypes.float16, "a_ptr", ("K", "M"), ("K * 2",), (64, 128), 128)
    message = fields(wire.tensor_map(Shape(one, 0, (512, 1024), (1040,))))
    described = fields(fields(message[9][0])[1][0])
    assert {n: described[n] for n in (1, 2, 6)} == {1: [6], 2: [3], 6: [0]}
    assert [packed(described[n][0]) for n in (3, 4, 5)] == [[1024, 512], [520, 1], [128, 64]]


# ------------------------------------------------------------------------------------------------------ traced programs


@triton.jit
def scale_kernel(x_ptr, n, factor, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


@triton.heuristics({"BLOCK": lambda args: 128 if args["n"] > 64 else 64})
@triton.jit
def chosen_kernel(x_ptr, n, factor, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


class Twice:
    """What a user's wrapper may do: several launches, the second on what the first wrote."""

    def __getitem__(self, grid: Any) -> Any:
        def launch(x: Any, out: Any) -> None:
            scale_kernel[grid](x, 64, 2.0, out, BLOCK=64)
            scale_kernel[grid](out, 64, 2.0, out, BLOCK=64)

        return launch


def lowered(function: Any, *arrays: Any) -> str:
    """The program that JAX makes of a function for CUDA, with `opaque` left out."""
    import jax

    text = jax.jit(function).trace(*arrays).lower(lowering_platforms=("cuda",)).as_text()
    return re.sub(r'opaque = "[^"]*"', "opaque", text)


def calls_in(text: str) -> list[str]:
    """Its lines with calls of kernels."""
    return [line for line in text.splitlines() if "@triton_kernel_call_ffi" in line]


def in_child(name: str) -> None:
    """Runs one of the functions below in a process of its own, in which the stub is the driver."""
    pytest.importorskip("jax")
    code = (
        f"import sys; sys.path[:0] = [{str(HERE)!r}, {str(HERE.parent)!r}, {str(HERE.parents[1] / 'samples')!r}]\n"
        "import stub; stub.load_driver()\nimport tilewright.jax\nfrom tilewright.jax import custom_call\n"
        f"custom_call.device = lambda: 0\nimport test_jax_custom_call as tests\ntests.{name}()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def program_calls_kernels() -> None:
    import jax
    import tilewright.jax

    x = jax.numpy.ones(100)
    grid = lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)  # noqa: E731
    for kernel, options in ((scale_kernel, {"BLOCK": 64}), (chosen_kernel, {})):
        call = functools.partial(tilewright.jax.call, kernel=kernel, out_shape=x, grid=grid, **options)
        text = lowered(lambda x: call(x + 1, 100, 3.0), x)  # noqa: B023 (called at once)
        (call,) = calls_in(text)
        assert "callback" not in text and "alias" not in call  # jaxlib itself sets the result to zero
    text = lowered(lambda x: tilewright.jax.call(x, kernel=Twice(), out_shape=x, grid=(1,)), x)
    first, second = calls_in(text)
    assert "alias" not in first and "operand_index = 0" in second  # which reads and writes what the first one wrote
    program = functools.partial(tilewright.jax.call, kernel=scale_kernel, out_shape=x, grid=(2,), BLOCK=64)
    text = str(jax.make_jaxpr(lambda x, factor: program(x, 100, factor))(x, jax.numpy.float32(3)))
    assert "pure_callback" in text and "ffi_call" not in text  # a number that only the run knows


def results_are_never_arguments() -> None:
    import jax
    import tilewright.jax

    x = jax.numpy.ones(64)
    for kernel, arguments, options, message in (
        (swap_kernel, (), {}, "argument x_ptr is written by swap_kernel, but arrays of JAX never change"),
        (scale_kernel, (64, 2.0), {"BLOCK": 64, "launch_cooperative_grid": True}, "XLA starts no cooperative grids"),
    ):
        with pytest.raises(triton.LaunchError, match=message):
            call = functools.partial(tilewright.jax.call, kernel=kernel, out_shape=x, grid=(1,), **options)
            lowered(lambda x: call(x, *arguments), x)  # noqa: B023 (called at once)


@triton.jit
def swap_kernel(x_ptr, out_ptr):
    i = tl.arange(0, 64)
    x = tl.load(x_ptr + i)
    tl.store(x_ptr + i, tl.load(out_ptr + i))
    tl.store(out_ptr + i, x)


def matmul_passes_maps() -> None:
    import jax
    import tilewright.jax
    from matmul import matmul_kernel

    m, n, k = 1024, 768, 512
    options = {"M": m, "N": n, "K": k, "stride_am": k, "stride_ak": 1, "stride_bk": n, "stride_bn": 1, "stride_cm": n,
               "stride_cn": 1, "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8, "ACTIVATION": ""}  # fmt: skip
    a, b = jax.numpy.ones((m, k), "float16"), jax.numpy.ones((k, n), "float16")
    shape = jax.ShapeDtypeStruct((m, n), "float16")

    def product(a: Any, b: Any) -> Any:
        return tilewright.jax.call(a, b, kernel=matmul_kernel, out_shape=shape, grid=(48,), num_warps=8, **options)

    (call,) = calls_in(lowered(product, a, b))
    (compiled,) = matmul_kernel.compilations.made.values()
    assert [one.base for one in compiled.artifact.tensor_maps] == ["a_ptr", "b_ptr", "c_ptr"]
    # a and b twice, as pointers and below maps; c once: its map takes the result
    operands = re.search(r"ffi\((.*?)\)", call)
    assert operands is not None and len(operands[1].split(",")) == 5 and "operand_index = 2" in call


def programs_of_all_axes_share_blocks() -> None:
    import jax
    import tilewright.jax
    from test_programs import batched
    from tilewright.jax import wire

    launches, plain = [], wire.opaque
    wire.opaque = lambda launch: launches.append(launch) or plain(launch)
    a, b = jax.numpy.ones((64, 256, 64), "float16"), jax.numpy.ones((64, 64, 128), "float16")
    shapes = jax.ShapeDtypeStruct((64, 256, 128), "float32"), jax.ShapeDtypeStruct((64, 8, 4), "int32")
    options = {"kernel": batched, "out_shape": shapes, "grid": (4, 8, 64), "M": 256, "N": 128, "K": 64}
    lowered(lambda a, b: tilewright.jax.call(a, b, **options, BM=64, BN=16, BK=32), a, b)
    (launch,) = launches
    assert launch.grid == (4, 8, 4)
    counts = [fields(parameter) for parameter in launch.parameters[7:10]]
    assert counts == [{3: [4]}, {3: [8]}, {3: [64]}]


def the_environment_chooses() -> None:
    import os

    import jax
    import tilewright.jax

    x = jax.numpy.ones(64)
    program = functools.partial(tilewright.jax.call, kernel=scale_kernel, out_shape=x, grid=(1,), BLOCK=64)
    for mode, interpret, on_gpu in (("", "", True), ("gpu", "1", True), ("", "1", False), ("cpu", "", False)):
        os.environ.update(TILEWRIGHT_MODE=mode, TRITON_INTERPRET=interpret)
        text = str(jax.make_jaxpr(lambda x: program(x, 64, 3.0))(x))
        assert ("ffi_call" in text) == on_gpu and "pure_callback" in text, (mode, interpret)


def test_the_environment_chooses() -> None:
    in_child("the_environment_chooses")


def memory_of_tunings_is_given_back() -> None:
    import gc

    import jax
    import tilewright.jax
    from tilewright.diagnostics import ToolchainError
    from tilewright.runtime.driver import bindings

    configs = [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})]
    x, taken, freed, unraised = jax.numpy.ones(100), [], [], []
    sys.unraisablehook = unraised.append

    def allocated(size: int) -> tuple[int, int]:
        if len(taken) == room:
            return 2, 0  # CUDA_ERROR_OUT_OF_MEMORY
        taken.append(0x1000 * (len(taken) + 1))
        return 0, taken[-1]

    bindings().cuMemAlloc, bindings().cuMemFree = allocated, lambda address: (freed.append(address), 0)[1:]
    for room in (100, 0, 1):  # 0 and 1: for the first array only
        tuned = triton.autotune(configs, ["n"], cache_results=False)(triton.JITFunction(scale_kernel.fn))
        call = functools.partial(tilewright.jax.call, kernel=tuned, out_shape=x, grid=(2,))
        taken.clear(), freed.clear()
        if room == 100:
            lowered(lambda x: call(x, 100, 3.0), x)  # noqa: B023 (called at once)
            assert len(taken) == 3  # two arrays, and what the clock overwrites
        else:
            with pytest.raises(ToolchainError, match="error 2"):
                lowered(lambda x: call(x, 100, 3.0), x)  # noqa: B023 (called at once)
        assert sorted(freed) == sorted(taken)
    gc.collect()
    assert not unraised


def test_memory_of_tunings_is_given_back() -> None:
    in_child("memory_of_tunings_is_given_back")


def test_programs_of_all_axes_share_blocks() -> None:
    in_child("programs_of_all_axes_share_blocks")


def test_kernels_become_custom_calls() -> None:
    in_child("program_calls_kernels")


def test_what_xla_cannot_do_is_an_error() -> None:
    in_child("results_are_never_arguments")


def test_tensor_maps_get_buffers_of_their_own() -> None:
    in_child("matmul_passes_maps")


def results_are_zeroed_once() -> None:
    import jax
    import tilewright.jax
    from tilewright.jax import wire

    x, zeros = jax.numpy.ones(64), []
    plain = wire.array
    wire.array = lambda count=0: zeros.append(count) or plain(count)
    lowered(lambda x: tilewright.jax.call(x, kernel=Twice(), out_shape=x, grid=(1,)), x)
    assert zeros == [0, 256, 0, 0]  # the second launch finds what the first wrote
    zeros.clear()
    lowered(lambda x: tilewright.jax.call(x, kernel=Twice(), out_shape=x, grid=(1,), zeroed=False), x)
    assert zeros == [0, 0, 0, 0]


def test_results_are_set_to_zero_before_the_first_launch() -> None:
    in_child("results_are_zeroed_once")
