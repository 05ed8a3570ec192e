"""The quick way to the driver, in C and in Python: it starts exactly what the long way would, or leaves the launch to it.

The functions without `test_` run in processes of their own, with the driver and the torch of `stub.py`.
"""

from __future__ import annotations

import inspect
import itertools
import os
import random
import struct
import sys
import threading
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stub
import tilewright as triton
import tilewright.language as tl

from unit.test_launching import with_stub


@triton.jit
def kernel(x_ptr, y_ptr, n, wide: tl.int64, scale, flag, BLOCK: tl.constexpr = 16, EPS: tl.constexpr = 0.0):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(y_ptr + i, mask=i < n) * scale + EPS, mask=i < wide)


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm, scale, BLOCK: tl.constexpr):
    rows, cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, 64)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, tl.cdiv(K, 64)):
        at = k * 64 + inner
        a = tl.load(a_ptr + rows[:, None] * stride_am + at[None, :], mask=at[None, :] < K, other=0.0)
        b = tl.load(b_ptr + at[:, None] * stride_bk + cols[None, :], mask=at[:, None] < K, other=0.0)
        total = tl.dot(a, b, total)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * stride_cm + cols[None, :], (total * scale).to(tl.float16), mask=mask)


@triton.jit
def filled(x_ptr, n, BLOCK: tl.constexpr = 16):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 1.0, mask=i < n)


@triton.jit
def named(x_ptr, *, n, BLOCK: tl.constexpr = 16):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 1.0, mask=i < n)


class CudaArray:
    """An array of a library that only the interface for CUDA tells about."""

    def __init__(self, address: int, typestr: str = "<f4", strides: Any = None, device: int = 0) -> None:
        self.address, self.typestr, self.strides = address, typestr, strides
        self.device = types.SimpleNamespace(id=device)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (64,), "typestr": self.typestr, "strides": self.strides, "data": (self.address, False)}


def without_compiler() -> list[Any]:
    """Kernels are translated but not compiled; the list gets every call of the long way."""
    from tilewright.runtime import cache
    from tilewright.runtime.building.nvrtc import Cubin
    from tilewright.runtime.jit import JITFunction

    stub.load_torch()
    cache.compiled = lambda artifact, target: Cubin(b"", 0, 0, 0, "")
    seen: list[Any] = []
    original = JITFunction.launch

    def launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(args)
        return original(self, *args, **kwargs)

    JITFunction.launch = launch  # type: ignore[method-assign]
    return seen


def agreement() -> None:
    """Random launches: the kernel that runs is the one that the long way picks; each kind goes the long way once."""
    seen = without_compiler()
    rng = random.Random(0)
    pointers = [stub.Tensor(0x1000), stub.Tensor(0x2008), stub.Tensor(0x3000, "float16")]
    integers = [0, 1, 2, 16, -16, 2**31 - 1, 2**31, 2**40, 2**63, True]
    found = 0
    sets: list[tuple[list[Any], dict[str, Any]]] = []
    for _ in range(250):
        wide = rng.choice([1, 5, 32, -(2**40)])
        arguments = [rng.choice(pointers), rng.choice(pointers), rng.choice(integers), wide, rng.choice([1.5, 3, 1]),
                     rng.choice([True, False, None])]  # fmt: skip
        sets.append((arguments, rng.choice([{}, {"BLOCK": 32}, {"EPS": -0.0}, {"EPS": 1}, {"num_warps": 8}])))
    for _ in range(1500):
        arguments, options = rng.choice(sets)
        before = len(seen)
        compiled = kernel[(rng.randint(1, 3), 2)](*arguments, **options)
        found += len(seen) == before
        assert compiled is kernel.launch(*arguments, grid=(0,), **options), (arguments, options)
    assert found > 1000, found


def repeated() -> None:
    """Launches that recur with other pointers and floating-point numbers, each followed by the same one the long way."""
    seen = without_compiler()
    rng, long_ones, kinds = random.Random(1), 0, [stub.Tensor, CudaArray, stub.exchanged()]
    for number in range(600):
        x, y = (rng.choice([0x1000, 0x2000, 0x3000, 0x4008]) for _ in range(2))
        kind = rng.choice(kinds)
        values = (
            rng.choice([2, 16, 2**40]) if number % 7 == 0 else 5,
            rng.choice([6, 32]),
            rng.random(),
            rng.random() < 0.5,
        )
        grid = rng.choice([(2,), (3, 2), [4, 1, 2], 5])
        options: dict[str, Any] = rng.choice([{}, {}, {"stream": 9}, {"BLOCK": 32}])
        before = len(seen)
        kernel[grid](kind(x), kind(y), *values, **options)
        long_ones += len(seen) - before
        kernel.launch(kind(x), kind(y), *values, grid=grid, **options)
    assert long_ones <= 30 * len(kinds), long_ones  # each of some 29 specialisations once for each kind
    assert any(kernel_is_ready(table) for table in ready_tables(kernel)), "nothing went the quickest way"


def ready_tables(function: Any) -> list[dict[Any, Any]]:
    """What the functions written for a kernel have ready."""
    quick = [written for written in function._fast._written.values() if written is not None]
    written = [inspect.unwrap(one if hasattr(one, "__globals__") else one.state[0]) for one in quick]
    return [one.__globals__["_tw_ready"] for one in written]


def kernel_is_ready(table: dict[Any, Any]) -> bool:
    return any(value is not None for value in table.values())


def with_maps() -> None:
    """The same for a persistent kernel with tensor maps, whose ready launches belong to their pointers."""
    seen = without_compiler()
    rng = random.Random(2)
    for _ in range(120):
        a, b, c = (rng.choice([0x10000, 0x20000]) for _ in range(3))
        m = rng.choice([512, 1024, 640])
        arguments = (*(stub.Tensor(one, "float16") for one in (a, b, c)), m, 256, 256, 256, 256, 256, rng.random(), 128)
        product[(m // 128, 2)](*arguments)
        product.launch(*arguments, grid=(m // 128, 2))
    assert len(seen) < 130 and "tma_load" in product.launch(*arguments, grid=(1,), warmup=True).source
    tables = ready_tables(product)
    assert any(type(value) is dict and len(value) == 8 for table in tables for value in table.values())


def emptied() -> None:
    """A launch is made ready while another thread, whose launches are many, empties the table of those that are ready."""
    from tilewright.runtime.launching import fast_path, ready

    without_compiler()
    arguments = (*(stub.Tensor(0x10000 * number, "float16") for number in (1, 2, 3)), *[256] * 6, 1.5, 128)
    original = fast_path.make_ready

    def make_ready(*given: Any) -> ready.Ready | None:
        for table in ready_tables(product):
            table.clear()
        return original(*given)

    fast_path.make_ready = make_ready
    for _ in range(4):
        product[(2, 2)](*arguments)
    assert any(kernel_is_ready(table) for table in ready_tables(product))


def specialised() -> None:
    """`compiled[grid]` launches its specialisation, quickly from the second time on, and refuses all others."""
    from tilewright.diagnostics import ArgumentKindError, DeviceError

    without_compiler()
    x, y = stub.Tensor(0x1000), stub.Tensor(0x2000)
    compiled = kernel.compile("*fp32:16, *fp32:16, i32, i64, fp32, i1, 16, 0.0")
    calls: list[Any] = []
    original = compiled.launch_checked
    compiled.launch_checked = lambda *args, **kwargs: calls.append(args) or original(*args, **kwargs)
    for number in range(5):
        assert compiled[(number % 2 + 1,)](x, y, 5, 6, number + 0.5, True) is compiled
    assert len(calls) == 1
    for elsewhere in (np.zeros(16, np.float32), stub.Tensor(0x1000, device=1)):  # whose address means nothing here
        try:
            compiled[(1,)](elsewhere, elsewhere, 5, 6, 1.5, True)
        except DeviceError:
            continue
        raise AssertionError(elsewhere)
    for wrong in ((x, y, 16, 6, 1.5, True), (stub.Tensor(0x1008), y, 5, 6, 1.5, True), (x, y, 5, 6, 1.5, True, 32)):
        for _ in range(2):
            try:
                compiled[(1,)](*wrong)
            except ArgumentKindError:
                continue
            raise AssertionError(wrong)
    os.environ["STUB_DEVICES"] = "2"
    sys.modules["torch"].cuda.current_device = lambda: 1
    assert kernel.compile("*fp32:16, *fp32:16, i32, i64, fp32, i1, 16, 0.0").device == 1


def surroundings() -> None:
    """What the environment asks for counts from the next launch on."""
    without_compiler()
    x, y = stub.Tensor(0x1000), stub.Tensor(0x2000)
    found = []
    for arch in (None, None, None, "sm_80", "sm_80", "", "sm_80"):
        os.environ.pop("TILEWRIGHT_ARCH", None)
        if arch is not None:
            os.environ["TILEWRIGHT_ARCH"] = arch
        found.append(kernel[(1,)](x, y, 5, 6, 1.5, True).metadata.target)
    assert found == ["sm_90a"] * 3 + ["sm_80"] * 2 + ["sm_90a", "sm_80"], found


def twice() -> None:
    """Grids of all kinds, keywords, streams, hooks, other modes."""
    seen = without_compiler()
    x, y = stub.Tensor(0x1000), stub.Tensor(0x2000)
    for grid in ((5,), (5,), [6, 2], lambda meta: (meta["BLOCK"], 1, 2), 7, (0,), (1, 0)):
        kernel[grid](x, y, 5, 6, 1.5, True)
    kernel[(8,)](x, y, n=5, wide=6, scale=1.5, flag=True, stream=9)
    assert len(seen) == 1
    from tilewright.runtime.hooks import LAUNCH_HOOKS

    calls: list[Any] = []
    LAUNCH_HOOKS.enter.append(lambda metadata: calls.append(("enter", metadata.get()["name"], metadata.get()["grid"])))
    LAUNCH_HOOKS.exit.append(lambda metadata: calls.append(("exit", metadata.get()["stream"])))
    kernel[(9,)](x, y, 5, 6, 1.5, True)
    assert calls == [("enter", "kernel", (9, 1, 1)), ("exit", stub.STREAM)] and len(seen) == 2
    LAUNCH_HOOKS.enter.clear()
    LAUNCH_HOOKS.exit.clear()
    kernel.compile("*fp32:16, *fp32:16, i32, i64, fp32, i1, 16, 0.0")[(10,)](x, y, 5, 6, 1.5, True)


def wrong() -> None:
    """What is not right goes the long way, which says what is wrong; so does what another mode is to run."""
    from tilewright.diagnostics import ArgumentKindError, DeviceError, GridError, LaunchError

    without_compiler()
    x, y, far = stub.Tensor(0x1000), stub.Tensor(0x2000), stub.Tensor(0x3000, device=1)
    kernel[(1,)](x, y, 5, 6, 1.5, True)
    for grid, arguments, options, error, words in (
        ((1.5,), (x, y, 5, 6, 1.5, True), {}, GridError, "must be integers"),
        ((1, 2, 3, 4), (x, y, 5, 6, 1.5, True), {}, GridError, "one to three"),
        ((-1,), (x, y, 5, 6, 1.5, True), {}, GridError, "non-negative"),
        ((None,), (x, y, 5, 6, 1.5, True), {}, GridError, "must be integers"),
        ((1, 65536), (x, y, 5, 6, 1.5, True), {}, GridError, "the hardware takes 65535"),
        (lambda: (1,), (x, y, 5, 6, 1.5, True), {}, GridError, "a function of the dict"),
        ((1,), (x, y, 5, 6, 1.5, True), {"stream": "main"}, LaunchError, "must be a stream"),
        ((1,), (x, y, 5, 6, 1.5, True), {"warmup": True}, KeyError, "warmup"),
        ((1,), (x, y, 5), {}, TypeError, "missing a required argument: 'wide'; its parameters are x_ptr"),
        ((1,), (x, y, 5, 6, 1.5, True, 16, 0.0, 1), {}, TypeError, "too many positional"),
        ((1,), (x, y, 5, 6, 1.5, True), {"n": 5}, TypeError, "multiple values for argument 'n'"),
        ((1,), (x, y, 5, 6, 1.5, True), {"nowarps": 2}, KeyError, "nowarps"),
        ((1,), (x, far, 5, 6, 1.5, True), {}, DeviceError, "one device"),
        ((1,), (x, "y", 5, 6, 1.5, True), {}, ArgumentKindError, "compile-time parameter"),
    ):
        for _ in range(2):
            try:
                kernel[grid](*arguments, **options)
            except error as raised:
                assert words in str(raised), raised
            else:
                raise AssertionError(words)
    os.environ["TILEWRIGHT_MODE"] = "cpu"
    try:
        kernel[(1,)](x, y, 5, 6, 1.5, True)
    except DeviceError:
        return
    raise AssertionError("the mode was not looked at")


def grids_of_objects() -> None:
    """A function is called once for a launch, whatever it does; objects in a grid count with the number that they are now."""
    seen = without_compiler()
    x = stub.Tensor(0x1000)
    for number in range(1, 5):
        named[(number,)](x, n=5)
    numbers = itertools.count(5)
    for _ in range(2):
        filled[lambda meta: (next(numbers), meta["BLOCK"])](x_ptr=x, n=5)
    for _ in range(2):
        filled[lambda meta: (next(numbers), meta["BLOCK"])](x, 5)
    changing = type("Number", (), {"__index__": lambda self: self.now})()
    for changing.now in range(9, 14):
        filled[(changing,)](x, 5)
    assert len(seen) == 2

    def failing(meta: Any) -> Any:
        raise ValueError(next(numbers))

    for expected in (9, 10):
        try:
            filled[failing](x, 5)
        except ValueError as error:
            assert error.args == (expected,)
    try:
        named[(1,)](x, 5)
    except TypeError:
        return
    raise AssertionError("a parameter behind a star was passed by position")


def threads() -> None:
    """Many threads launch and translate at once: every launch arrives with its own values."""
    without_compiler()

    def run(number: int) -> None:
        for step, block in itertools.product(range(40), (16, 32, 64)):
            x = stub.Tensor(0x10000 * (number + 1))
            compiled = kernel[(number + 1, step + 1)](x, x, 3, 6, 1.5, True, BLOCK=block)
            if f"BLOCK = {block}" not in compiled.source:
                failed.append(compiled)

    failed: list[Any] = []
    started = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    assert not failed


@pytest.fixture(params=["C", "Python"])
def way(request: pytest.FixtureRequest) -> str:
    """Code that comes first in a process whose launches go through the part in C, or through Python alone."""
    if request.param == "Python":
        return stub.WITHOUT_C
    pytest.importorskip("tilewright.runtime.quick_launch")
    return ""


def test_the_quick_way_runs_what_the_long_way_would(tmp_path: Path, way: str) -> None:
    assert len(with_stub(way + "from test_fast_path import agreement as f; f()", tmp_path, (8, 8))) == 1500


def test_grids_keywords_streams_and_hooks(tmp_path: Path, way: str) -> None:
    launches = with_stub(way + "from test_fast_path import twice as f; f()", tmp_path, (8, 8, 4, 8, 4, 1))
    sizes = [tuple(map(int, words[:3])) for words in launches]
    assert sizes == [(5, 1, 1), (5, 1, 1), (6, 2, 1), (16, 1, 2), (7, 1, 1), (8, 1, 1), (9, 1, 1), (10, 1, 1)]
    assert [words[5] for words in launches] == ["77"] * 5 + ["9", "77", "77"]
    assert len({tuple(words[6:]) for words in launches}) == 1


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("repeated", (8, 8, 4, 8, 4, 1)), ("with_maps", (8, 8, 8, *(4,) * 9, 128, 128, 128))],
)
def test_what_is_ready_arrives_as_the_long_way_sends_it(
    tmp_path: Path, way: str, name: str, sizes: tuple[int, ...]
) -> None:
    launches = with_stub(way + f"from test_fast_path import {name} as f; f()", tmp_path, sizes)
    assert len(launches) in (1200, 240) and launches[::2] == launches[1::2]


def test_another_thread_may_empty_what_is_ready(tmp_path: Path, way: str) -> None:
    launches = with_stub(
        way + "from test_fast_path import emptied as f; f()", tmp_path, (8, 8, 8, *(4,) * 9, 128, 128, 128)
    )
    assert len(launches) == 4 and len(set(map(tuple, launches))) == 1


def test_grids_are_looked_at_once_in_every_launch(tmp_path: Path, way: str) -> None:
    launches = with_stub(way + "from test_fast_path import grids_of_objects as f; f()", tmp_path, (8, 4))
    assert [int(words[0]) for words in launches] == list(range(1, 14)) and launches[7][1] == "16"


def test_a_compiled_kernel_launches_itself_alone(tmp_path: Path, way: str) -> None:
    launches = with_stub(way + "from test_fast_path import specialised as f; f()", tmp_path, (8, 8, 4, 8, 4, 1))
    assert [words[0] for words in launches] == ["1", "2", "1", "2", "1"]
    assert [struct.unpack("<f", bytes.fromhex(words[10]))[0] for words in launches] == [0.5, 1.5, 2.5, 3.5, 4.5]


def test_the_environment_is_read_at_every_launch(tmp_path: Path, way: str) -> None:
    assert len(with_stub(way + "from test_fast_path import surroundings as f; f()", tmp_path, ())) == 7


def test_errors_are_those_of_the_long_way(tmp_path: Path, way: str) -> None:
    assert len(with_stub(way + "from test_fast_path import wrong as f; f()", tmp_path, ())) == 1


def test_threads_do_not_share_arguments(tmp_path: Path, way: str) -> None:
    launches = with_stub(way + "from test_fast_path import threads as f; f()", tmp_path, (8,))
    expected = [(n + 1, s + 1, 0x10000 * (n + 1)) for n in range(6) for s in range(40) for _ in range(3)]
    found = [(int(w[0]), int(w[1]), int.from_bytes(bytes.fromhex(w[6]), "little")) for w in launches]
    assert sorted(found) == expected
