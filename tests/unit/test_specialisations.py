"""A kernel's specialisations as tools see them: which there are, their data for other processes, who watches launches."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import knobs
from tilewright.artifact import Options
from tilewright.diagnostics import SpecializationDataError
from tilewright.runtime import placement
from tilewright.runtime.arguments.arrays import HOST
from tilewright.runtime.placement import ON_HOST, Placement
from tilewright.runtime.specialisations import read, specialisation_for
from tilewright.tools.tensor_descriptor import TensorDescriptor


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    with knobs.runtime.scope():
        yield


def added(x_ptr, n, by, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) + by, mask=i < n)


def new_kernel(**options: Any) -> Any:
    return triton.JITFunction(added, **options)


def test_what_is_compiled_can_be_listed_and_forgotten() -> None:
    kernel, other = new_kernel(), new_kernel()
    x = np.zeros(16, np.float32)
    assert len(kernel.device_caches[0][0]) == 0 and list(kernel.device_caches) == []
    compiled = [kernel[(1,)](x, n, 2.0, N=16) for n in (16, 5, 7, 32)]
    known = kernel.device_caches[0][0]
    assert len(known) == 2 and list(kernel.device_caches) == [0] and set(known.values()) == set(compiled)
    assert compiled[0].specialisation.name in known and known[compiled[1].specialisation.name] is compiled[1]
    other[(1,)](x, 16, 2.0, N=16)
    known.clear()
    assert len(known) == 0 and len(other.device_caches[0][0]) == 1 and len(kernel.device_caches[7][0]) == 0
    assert kernel[(1,)](x, 16, 2.0, N=16) is not compiled[0] and len(known) == 1
    kernel.device_caches.clear()
    assert len(kernel.device_caches) == 0


def data_of(start: Callable[[], Any]) -> str:
    """What hooks are told of the one specialisation that a launch needs."""
    told: list[str] = []
    knobs.runtime.jit_cache_hook = lambda **facts: told.append(facts["compile"]["specialization_data"])
    start()
    knobs.runtime.jit_cache_hook = None
    (data,) = told
    return data


def test_a_specialisation_is_compiled_from_its_data() -> None:
    kernel = new_kernel()
    data = data_of(lambda: kernel.warmup(tl.float32, 16, 2.5, N=16, num_warps=2))
    first = kernel.warmup(tl.float32, 16, 2.5, N=16, num_warps=2)
    kernel.device_caches.clear()
    made = kernel.preload(data)
    assert made is not first and made.hash == first.hash and made.metadata.num_warps == 2
    told: list[Any] = []
    knobs.runtime.jit_cache_hook = lambda **facts: told.append(facts)
    x = np.ones(16, np.float32)
    assert kernel[(1,)](x, 16, 2.5, N=16, num_warps=2) is made and (x == 3.5).all() and told == []


@triton.jit
def mixed_kernel(x_desc, pair, out_ptr, one, TYPE: tl.constexpr, SHIFTS: tl.constexpr, NAME: tl.constexpr):
    x = x_desc.load([0]) + pair[0] + pair[1][0] + SHIFTS[0][1] + one
    tl.store(out_ptr + tl.arange(0, 16), x.to(TYPE))


def test_all_kinds_of_arguments_have_data() -> None:
    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.int32)

    def launch() -> Any:
        descriptor = TensorDescriptor(x, [16], [1], [16])
        return mixed_kernel[(1,)](descriptor, (2, (3.0, None)), out, 1, tl.int32, ((0, 4), (5,)), "it's")

    compiled = launch()
    mixed_kernel.device_caches.clear()
    data = data_of(launch)
    mixed_kernel.device_caches.clear()
    made = mixed_kernel.preload(data)
    assert launch() is made and made.hash == compiled.hash
    np.testing.assert_array_equal(out, np.arange(16) + 10)


def test_all_of_a_descriptor_is_in_the_data() -> None:
    x, out = np.zeros((16, 32), np.float32), np.zeros(16, np.int32)
    descriptor = TensorDescriptor(x, [16, 24], [32, 1], [16, 8], "nan", round_f32_to_tf32=True)
    call = mixed_kernel.call_of((descriptor, (2, (3.0, None)), out, 1, tl.int32, ((0, 4), (5,)), "it's"), {})
    data = specialisation_for(mixed_kernel, call.arguments, Options(), ON_HOST).data()
    assert data is not None and read(mixed_kernel, data, ON_HOST).arguments == call.arguments


def test_what_is_known_of_a_descriptor_s_sides_is_in_the_name() -> None:
    x = np.zeros((32, 32), np.float32)
    names = set()
    for shape in ([8, 8], [16, 8], [8, 16], [16, 16]):
        call = new_kernel().call_of((TensorDescriptor(x, shape, [32, 1], [8, 8]), 16, 1.0, 16), {})
        names.add(specialisation_for(mixed_kernel, call.arguments, Options(), ON_HOST).name)
    assert len(names) == 4


def test_data_of_another_kernel_or_place_are_refused() -> None:
    kernel = new_kernel()
    data = data_of(lambda: kernel.warmup(tl.float32, 16, 2.5, N=16))
    with pytest.raises(RuntimeError, match=r"Specialization data is for .*added, and this kernel is .*mixed_kernel"):
        mixed_kernel.preload(data)
    with pytest.raises(SpecializationDataError, match=r"Specialization data is for {'backend': 'tpu'"):
        kernel.preload(data.replace('"cpu"', '"tpu"'))
    for broken in ("", "{}", data[:-1], data.replace('"num_warps"', '"warps"')):
        with pytest.raises(SpecializationDataError, match="no specialization data of this version"):
            kernel.preload(broken)


@triton.jit
def four():
    return 4


@triton.jit
def calling_kernel(out_ptr, WHAT: tl.constexpr):
    tl.store(out_ptr, WHAT())


def test_a_kernel_as_argument_counts_with_its_text() -> None:
    out, before = np.zeros(1, np.int32), four.src
    assert data_of(lambda: calling_kernel[(1,)](out, four)) is None and out[0] == 4, "it has no text to be found by"
    four._unsafe_update_src(before.replace("4", "5"))
    calling_kernel[(1,)](out, four)
    assert out[0] == 5
    four._unsafe_update_src(before)
    calling_kernel[(1,)](out, four)
    assert out[0] == 4


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, 3), ({"do_not_specialize": ["n"]}, 1), ({"do_not_specialize_on_alignment": [1]}, 2)],
)
@pytest.mark.parametrize("type_of", (np.asarray, lambda x: pytest.importorskip("torch").from_numpy(x)))
def test_what_is_told_apart(options: dict[str, Any], expected: int, type_of: Callable[..., Any]) -> None:
    kernel, x = new_kernel(**options), np.zeros(32, np.float32)
    for n in (1, 2, 4, 8, 16, 32):
        kernel[(1,)](type_of(x), n, 1.0, N=32)
    assert len(kernel.device_caches[0][0]) == expected
    np.testing.assert_array_equal(x, [6, 5, *[4] * 2, *[3] * 4, *[2] * 8, *[1] * 16])


@pytest.mark.parametrize("mode", ("cpu", "interpret"))
def test_functions_before_launches(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    kernel, x = new_kernel(), np.ones(8, np.float32)
    kernel[(1,)](x, 8, 1.0, N=8)
    kernel.add_pre_run_hook(lambda *args, **kwargs: args[0].fill(10 * kwargs["N"]))
    kernel[(1,)](x, 8, 2.0, N=8)
    assert (x == 82).all()
    kernel.run(x, 8, 3.0, N=8, grid=(1,), warmup=False)
    assert (x == 83).all()


def test_tools_that_watch_launches_see_all() -> None:
    kernel, x = new_kernel(), np.ones(8, np.float32)
    kernel[(1,)](x, 8, 1.0, N=8)
    seen, original = [], triton.JITFunction.run

    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append((self, kwargs["grid"], kwargs["warmup"]))
        return original(self, *args, **kwargs)

    with mock.patch.object(triton.JITFunction, "run", watched):
        kernel[(1, 1)](x, 8, 1.0, N=8)
        triton.heuristics({"N": lambda args: 8})(kernel)[(1,)](x, 8, by=1.0)
    kernel[(1,)](x, 8, 1.0, N=8)
    assert seen == [(kernel, (1, 1), False), (kernel, (1,), False)] and (x == 5).all()

    class Counting(triton.JITFunction):
        launches = 0

        def run(self, *args: Any, **kwargs: Any) -> Any:
            self.launches += 1
            return super().run(*args, **kwargs)

    counting = Counting(added)
    for _ in range(3):
        counting[(1,)](x, 8, 1.0, N=8)
    assert counting.launches == 3 and (x == 8).all()


def test_the_line_is_part_of_the_key() -> None:
    first = new_kernel()
    moved = new_kernel()
    assert first.cache_key == moved.cache_key
    moved.first_line += 1
    assert first.cache_key != moved.cache_key


def test_libraries_ask_how_parameters_are_told_apart() -> None:
    kernel = new_kernel(do_not_specialize=["n"], do_not_specialize_on_alignment=[2])
    told = [(p.num, p.name, p.do_not_specialize, p.do_not_specialize_on_alignment) for p in kernel.params]
    assert told == [
        (0, "x_ptr", False, False), (1, "n", True, False), (2, "by", False, True), (3, "N", False, False),
    ]  # fmt: skip
    assert kernel.constexprs == [3] and list(kernel.signature.parameters) == kernel.arg_names


@triton.jit
def scattered_kernel(A: tl.constexpr, x_ptr, B: tl.constexpr, n, C: tl.constexpr = 3):
    i = tl.arange(0, B)
    tl.store(x_ptr + i, A + C, mask=i < n)


def test_a_compiled_kernel_knows_its_compile_time_values() -> None:
    x = np.zeros(8, np.float32)
    compiled = scattered_kernel.warmup(1, tl.float32, 8, 5, C=4)
    for arguments, expected in (((1, x, 8, 5, 4), 5), ((x, 6), 6), ((x, 3), 3)):
        compiled[(1,)](*arguments)
        assert (x == 5).sum() == expected, arguments
        x[:] = 0
    for wrong in ((1, x, 8, 5), (2, x, 8, 5, 4), (x, 16)):
        with pytest.raises(triton.LaunchError, match="another specialisation"):
            compiled[(1,)](*wrong)


@triton.jit
def streamed_kernel(x_ptr, stream, n, B: tl.constexpr = 8):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x_ptr + i, stream, mask=i < n)


def test_a_compiled_kernel_takes_arguments_as_the_kernel_itself_does() -> None:
    """A grid that is a function sees defaults, and a parameter may have the name of an option."""
    x = np.zeros(32, np.float32)
    compiled = streamed_kernel.warmup(tl.float32, 2.0, 24)
    for given in ((x, 3.0, 24), (x, 3.0, 24, 8)):
        x[:] = 0
        compiled[lambda arguments: (triton.cdiv(arguments["n"], arguments["B"]),)](*given)
        assert (x == 3).sum() == 24
    compiled[(1,)](x, stream=5.0, n=24)
    assert (x == 5).sum() == 8


class Shown:
    """An object that shows less than it has."""

    def __init__(self, step: int) -> None:
        self.step = step

    def __repr__(self) -> str:
        return "Shown()"


class Compared(Shown):
    """The same that can be compared, and not hashed."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Compared) and other.step == self.step

    __hash__ = None  # type: ignore[assignment]


@triton.jit
def stepping(x_ptr, CONFIG: tl.constexpr):
    tl.store(x_ptr, CONFIG.step)


@triton.jit
def stepping_many(x_ptr, CONFIGS: tl.constexpr):
    tl.store(x_ptr, CONFIGS["one"].step)


@pytest.mark.parametrize("kind", (Shown, Compared))
def test_objects_of_one_text_are_told_apart(kind: type[Shown]) -> None:
    x = np.zeros(1, np.int32)
    for step in (3, 4, 3):
        stepping[(1,)](x, kind(step))
        assert x[0] == step
        stepping_many[(1,)](x, {"one": kind(step)})
        assert x[0] == step


def test_equal_objects_share_a_specialisation() -> None:
    kernel = triton.JITFunction(stepping.fn)
    x = np.zeros(1, np.int32)
    for config in (Compared(3), Compared(3), Compared(5)):
        kernel[(1,)](x, config)
    assert len(kernel.compilations.made) == 2


def test_what_is_forgotten_is_not_kept_alive() -> None:
    @triton.jit
    def kernel(x_ptr, VALUE: tl.constexpr):
        tl.store(x_ptr, 3)

    value = Compared(3)
    gone = weakref.ref(value)
    kernel[(1,)](np.zeros(1, np.int32), value)
    kernel.device_caches.clear()
    del value
    gc.collect()
    assert gone() is None


def test_zeros_and_nan_count_by_their_text() -> None:
    @triton.jit
    def kernel(x_ptr, VALUE: tl.constexpr):
        tl.store(x_ptr, VALUE)

    x = np.zeros(1, np.float32)
    for value in (0.0, -0.0, float("nan"), float("nan")):
        kernel[(1,)](x, value)
        assert np.signbit(x[0]) == np.signbit(value) and np.isnan(x[0]) == np.isnan(value)
    assert len(kernel.compilations.made) == 3


@triton.jit
def without_arrays(n, BLOCK: tl.constexpr):
    tl.device_print("n", n + BLOCK)


def test_kernels_without_arrays_run_where_what_has_no_arguments_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the GPU if there is one, so that what `warmup` compiles is what `preload` finds."""
    of_host = new_kernel().call_of((np.zeros(4), 4, 1, 4), {}).arrays
    assert without_arrays.call_of((3,), {"BLOCK": 4}).arrays == ()
    monkeypatch.setattr(placement.driver, "is_available", lambda: True)
    monkeypatch.setattr(placement, "current_device", lambda: 2)
    assert placement.placement_of(()) == placement.placement_here() == ON_HOST  # TILEWRIGHT_MODE=cpu
    monkeypatch.delenv("TILEWRIGHT_MODE")
    assert placement.placement_of(()) == placement.placement_here() == Placement("gpu", 2)
    assert placement.placement_of(of_host).device == HOST
    monkeypatch.setattr(placement.driver, "is_available", lambda: False)
    assert placement.placement_of(()).device == HOST and placement.placement_here() == ON_HOST
