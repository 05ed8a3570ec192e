"""The part of a launch that is in C: what it takes on, what it leaves to Python, and that it loses no object.

That it starts what the long way would is in `test_fast_path.py`. The functions without `test_` run in processes of their own,
with the driver and the torch of `stub.py`.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import struct
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
import stub
import tilewright as triton
import tilewright.language as tl

from unit.test_fast_path import CudaArray, product, ready_tables, without_compiler
from unit.test_launching import with_stub

SIZES = (8, 8, 4, 4)


@triton.jit
def kernel(x_ptr, y_ptr, n, scale, EPS: tl.constexpr = 0.0, BLOCK: tl.constexpr = 16):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(y_ptr + i, mask=i < n) * scale + EPS, mask=i < n)


def counted(function: Any) -> list[Any]:
    """Has a kernel's launches in C, whose like has been, write down what they leave to Python."""
    from tilewright.runtime.quick_launch import Launch

    left: list[Any] = []
    written, *rest = function._fast.function.state

    def otherwise(*args: Any, **kwargs: Any) -> Any:
        left.append((args, kwargs))
        return written(*args, **kwargs)

    function._fast.function = Launch(otherwise, *rest)
    return left


def taken_on() -> None:
    """From the fourth launch of a kind on nothing is left to Python, whatever of the call changes that may."""
    without_compiler()
    one = stub.exchanged()
    for kind in (stub.Tensor, one, CudaArray):
        for x, y, options in (
            (0x1000, 0x2000, {}),
            (0x1008, 0x2000, {}),
            (0x1000, 0x2000, {"num_warps": 8, "BLOCK": 32}),
            (0x1000, 0x2000, {"EPS": -0.0, "stream": 5}),
        ):
            for grid in ((2,), [2, 3], 4, lambda meta: (meta["BLOCK"] // 16, 1, 5)):
                for turn in range(3):
                    kernel[grid](kind(x), kind(y + 64 * turn), 5, turn + 0.5, **options)
                left = counted(kernel)
                for turn in range(3, 5):
                    kernel[grid](kind(x), kind(y + 64 * turn), 5, turn + 0.5, **options)
                assert not left, (kind, options, left)


def left_to_python() -> None:
    """What is new, and what only Python can do."""
    from tilewright.runtime.hooks import LAUNCH_HOOKS

    without_compiler()
    x, y = stub.Tensor(0x1000), stub.Tensor(0x2000)
    for _ in range(3):
        kernel[(1,)](x, y, 5, 0.5)
    left = counted(kernel)
    quick: Any = kernel._fast.function
    half = stub.Tensor(0x1000, "float16")
    changes: list[tuple[Any, Any]] = [
        ((x, y, 6, 0.5), {}), ((x, y, 5, 0.5, 0.0), {"EPS": 1.0}), ((x, y, 5, 0.5), {"num_warps": 2}),
        ((half, y, 5, 0.5), {}), ((x, y, 5, 3), {}),
    ]  # fmt: skip
    for number, (args, options) in enumerate(changes):
        try:
            quick((1,), *args, **options)
        except TypeError as error:  # given twice
            assert "multiple values" in str(error), error
        assert len(left) == number + 1
    os.environ["TILEWRIGHT_ARCH"] = "sm_80"
    assert quick((1,), x, y, 5, 0.5).metadata.target == "sm_80" and len(left) == number + 2
    del os.environ["TILEWRIGHT_ARCH"]
    LAUNCH_HOOKS.enter.append(seen := [].append)
    quick((1,), x, y, 5, 0.5)
    LAUNCH_HOOKS.enter.remove(seen)
    assert len(left) == number + 3
    quick((1,), x, y, 5, 0.5)
    assert len(left) == number + 3
    streams = type("Stream", (), {"cuda_stream": 9})()
    quick((1,), x, y, 5, 0.5, stream=streams)
    assert len(left) == number + 4
    kernel[(1,)].__call__(x, y, 5, scale=0.5)
    quick.__call__((1,), x, y, 5, scale=0.5)
    for wrong in (quick, kernel[(1,)]):
        try:
            wrong()
        except TypeError:
            continue
        raise AssertionError(wrong)


class Broken(stub.Tensor):
    """A tensor that cannot be looked into once it is told why."""

    error: BaseException | None = None

    def data_ptr(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.address


Broken.__module__ = "torch"


def errors() -> None:
    """An error is the long way's; what is no error but ends the program arrives at once."""
    without_compiler()
    x, y = Broken(0x1000), Broken(0x2000)
    for _ in range(3):
        kernel[(1,)](x, y, 5, 0.5)
    left = counted(kernel)
    for error, kind, times in ((ValueError("freed"), ValueError, 1), (KeyboardInterrupt(), KeyboardInterrupt, 0)):
        y.error = error
        before = len(left)
        try:
            kernel._fast.function((1,), x, y, 5, 0.5)
        except kind:
            assert len(left) == before + times
        else:
            raise AssertionError(kind)
    y.error = None
    y.address = -16
    try:
        kernel._fast.function((1,), x, y, 5, 0.5)
    except struct.error:
        pass
    else:
        raise AssertionError("a negative address")
    y.address = 0x2000
    assert kernel._fast.function((1,), x, y, 5, 1e39) is not None and len(left) == 2
    assert kernel._fast.function((1,), x, y, 5, float("nan")) is not None and len(left) == 2


def losses() -> None:
    """Many launches of every kind, on all ways out, leave as many objects as there were."""
    seen = without_compiler()
    exchanged = stub.exchanged()
    broken = Broken(0x3000)
    kinds = [stub.Tensor(0x1000), exchanged(0x1008), CudaArray(0x1000)]
    half = [stub.Tensor(address, "float16") for address in (0x10000, 0x20000, 0x30000)]
    grids: list[Any] = [(1,), [2], 3, lambda meta: (meta["BLOCK"],)]
    bound = kernel.compile("*fp32:16, *fp32:16, i32, fp32, 0.0, 16")

    def round_of_launches() -> None:
        for array in kinds:
            for grid in grids:
                for options in ({}, {"EPS": -0.0}, {"stream": 3, "num_warps": 8}):
                    for _ in range(2):
                        kernel[grid](array, array, 1000, 0.5, **options)
        for _ in range(4):
            bound[(1,)](kinds[0], kinds[0], 1000, 0.5, 0.0, 16)
            product[(4, 2)](*half, 512, 256, 256, 256, 256, 256, 0.25, 128)
        for broken.error in (None, None, ValueError("freed")):
            try:
                kernel[(1,)](broken, broken, 1000, 0.5)
            except ValueError:
                continue
        broken.error = None
        for wrong in ((kinds[0],), (kinds[0], kinds[0], 1000, 0.5, 0.0, 16, 1)):
            try:
                kernel[(1,)](*wrong)
            except TypeError:
                continue

    for _ in range(3):
        round_of_launches()
    watched = [True, kinds[0].dtype, kinds[0].address, kinds[0], exchanged, *grids, kernel, bound, broken, half[0]]
    watched += [launch for table in (*ready_tables(kernel), *ready_tables(product)) for launch in table.values()]
    seen.clear()
    gc.collect()
    before, blocks = [sys.getrefcount(one) for one in watched], sys.getallocatedblocks()
    for _ in range(100):
        round_of_launches()
    seen.clear()
    gc.collect()
    after = [sys.getrefcount(one) for one in watched]
    assert all(now - then < 20 for now, then in zip(after, before, strict=True)), list(zip(before, after, strict=True))
    assert sys.getallocatedblocks() - blocks < 100, sys.getallocatedblocks() - blocks


def dropped() -> None:
    """What a kernel's launches in C hold goes when the kernel gets other ones: it holds itself in a circle."""
    from tilewright.runtime.launching.fast_path import FastPath

    without_compiler()
    x = stub.exchanged()(0x1000)
    for _ in range(4):
        kernel[(1,)](x, x, 5, 0.5)
    (ready,) = ready_tables(kernel)[0].values()
    assert ready in [held for pair in gc.get_referents(kernel._fast.function) if type(pair) is tuple for held in pair]
    grid = type("Grid", (), {})()
    grid.held = kernel[grid]
    gone = weakref.ref(kernel._fast), weakref.ref(grid)
    kernel._fast = FastPath(kernel)
    del grid
    gc.collect()
    held_here = object()
    assert [one() for one in gone] == [None, None] and sys.getrefcount(ready) == sys.getrefcount(held_here)


def many_parameters() -> None:
    """More parameters than C keeps room for."""
    without_compiler()
    names = [f"a{number}" for number in range(70)]
    path = Path(os.environ["TILEWRIGHT_CACHE_DIR"]).with_name("many_module.py")
    path.write_text("import tilewright as triton\nimport tilewright.language as tl\n\n\n@triton.jit\n"
                    f"def many(x_ptr, {', '.join(names)}):\n    tl.store(x_ptr, {' + '.join(names)})\n")  # fmt: skip
    spec = importlib.util.spec_from_file_location("many_module", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for turn in range(4):
        module.many[(1,)](stub.Tensor(0x1000), *[turn + number / 2 for number in range(70)])


def test_it_is_built_where_it_can_be() -> None:
    """The other tests are left out without it, so that this one says that they were not."""
    if not stub.can_build_c():
        pytest.skip("no compiler, or no header of Python with a stable interface")
    assert importlib.util.find_spec("tilewright.runtime.quick_launch") is not None, "install the package anew"


def run(name: str, tmp_path: Path, sizes: tuple[int, ...] = SIZES) -> list[list[str]]:
    pytest.importorskip("tilewright.runtime.quick_launch")
    return with_stub(f"from test_quick_launch import {name} as f; f()", tmp_path, sizes)


def test_what_recurs_does_not_reach_python(tmp_path: Path) -> None:
    assert len(run("taken_on", tmp_path)) == 3 * 4 * 4 * 5


def test_what_is_new_reaches_python(tmp_path: Path) -> None:
    launches = run("left_to_python", tmp_path)
    assert [words[5] for words in launches[-3:]] == ["9", "77", "77"] and len(launches) == 13


def test_errors_are_those_of_the_long_way(tmp_path: Path) -> None:
    launches = run("errors", tmp_path)
    assert [struct.unpack("<f", bytes.fromhex(words[9]))[0] for words in launches[:4]] == [0.5, 0.5, 0.5, float("inf")]
    assert len(launches) == 5 and launches[4][9] in ("0000c07f", "0000c0ff")


def test_no_object_is_lost(tmp_path: Path) -> None:
    assert len(run("losses", tmp_path, ())) > 5000


def test_it_can_be_collected(tmp_path: Path) -> None:
    assert len(run("dropped", tmp_path)) == 4


def test_more_parameters_than_there_is_room_for(tmp_path: Path) -> None:
    launches = run("many_parameters", tmp_path, (8, *(4,) * 70))
    assert [struct.unpack("<f", bytes.fromhex(words[8]))[0] for words in launches] == [0.5, 1.5, 2.5, 3.5]
