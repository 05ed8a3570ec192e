"""The GPU's launch path against a driver that writes down what it is asked: arguments, tensor maps, guards."""

from __future__ import annotations

import dataclasses
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import stub
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Artifact, LaunchParameter, Options, TensorMap
from tilewright.diagnostics import (
    ArgumentKindError,
    CooperativeGridError,
    HostExpressionError,
    TensorMapError,
    ToolchainError,
)
from tilewright.language import dtypes
from tilewright.language.dtypes import PointerType
from tilewright.runtime import driver
from tilewright.runtime.building import assembly, nvrtc
from tilewright.runtime.launching import tensor_maps
from tilewright.runtime.launching.packing import code_of, in_range, lay_out
from tilewright.runtime.launching.tensor_maps import Encoder, Shape, check_rules

HERE = Path(__file__).resolve().parent
HALF = PointerType(dtypes.float16)


def artifact(**changes: Any) -> Artifact:
    """A kernel of a pointer, two integers and a float, with two tensor maps over the pointer."""
    names = {"a_ptr": HALF, "M": dtypes.int32, "stride": dtypes.int64, "scale": dtypes.float32}
    maps = (
        TensorMap("a_map", dtypes.float16, "a_ptr", ("64", "M"), ("stride * 2",), (64, 128), 128),
        TensorMap("row_map", dtypes.float16, "a_ptr", ("M",), (), (256,)),
    )
    parameters = tuple(
        LaunchParameter(name, element, (number,)) for number, (name, element) in enumerate(names.items())
    )
    made = Artifact("", "fabricated", "sm_90a", 384, 200_000, parameters, tensor_maps=maps, guards=("M % 128 == 0",))
    return dataclasses.replace(made, **changes)


def with_stub(code: str, tmp_path: Path, sizes: tuple[int, ...]) -> list[list[str]]:
    """Runs Python code in a process with the stub driver; the words of the launches it saw."""
    pytest.importorskip("cuda.bindings")
    log = tmp_path / "launches"
    environment = {**os.environ, "LD_LIBRARY_PATH": stub.folder(), "STUB_LOG": str(log), "PYTHONPATH": f"{HERE}:{HERE.parent}",
                   "STUB_SIZES": ",".join(map(str, sizes)), "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache")}  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split() for line in log.read_text().splitlines()]


def test_arguments_and_tensor_maps_reach_the_driver(tmp_path: Path) -> None:
    code = (
        "from test_launching import artifact\nfrom tilewright.runtime.launching.launcher import Launcher\n"
        "launcher = Launcher(artifact(), 0x4000, 0)\n"
        "for m in (256, 256, 512): launcher.launch_anywhere(3, 2, 1, 77, (0x10000, m, 80, 1.5))\n"
    )
    first, second, third = with_stub(code, tmp_path, (8, 4, 8, 4, 128, 128))
    assert first == second and first[:6] == ["3", "2", "1", "384", "200000", "77"]
    assert b"".join(map(bytes.fromhex, first[6:10])) == struct.pack("<Qiqf", 0x10000, 256, 80, 1.5)
    wide, row = (struct.unpack("<16Q", bytes.fromhex(word)) for word in first[10:])
    half = 6  # CU_TENSOR_MAP_DATA_TYPE_FLOAT16
    assert wide == (0x10000, 2, half, 64, 256, 0, 0, 0, 160, 0, 0, 0, 64, 128, 0, 3)
    assert row == (0x10000, 1, half, 256, 0, 0, 0, 0, 0, 0, 0, 0, 256, 0, 0, 0)
    assert struct.unpack("<16Q", bytes.fromhex(third[10]))[4] == 512


def test_persistent_kernels_get_no_more_blocks_than_fit(tmp_path: Path) -> None:
    code = (
        "from test_launching import artifact\nfrom tilewright.runtime.launching.launcher import Launcher\n"
        "launcher = Launcher(artifact(tensor_maps=(), program_axes=1), 0x4000, 0)\n"
        "for grid in ((100, 1, 1), (1000, 2, 1), (5, 200, 1), (9, 70, 1)): launcher.launch_anywhere(*grid, 0, (16, 2, 3, 1.0))\n"
    )
    launches = with_stub(code, tmp_path, (8, 4, 8, 4, 4))
    found = [(*map(int, words[:3]), int.from_bytes(bytes.fromhex(words[10]), "little")) for words in launches]
    # On 132 multiprocessors; 70 blocks would leave 62 of them idle.
    assert found == [(100, 1, 1, 100), (66, 2, 1, 1000), (5, 200, 1, 5), (9, 70, 1, 9)]


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        (2, [(1, 2, 64, 4, 4), (3, 5, 7, 3, 5), (1, 1, 1, 1, 1)]),
        (3, [(4, 4, 8, 4, 4, 64), (3, 5, 7, 3, 5, 7), (1,) * 6]),
    ],
)
def test_programs_of_several_axes_share_blocks(axes: int, expected: list[tuple[int, ...]], tmp_path: Path) -> None:
    code = (
        "from test_launching import artifact\nfrom tilewright.runtime.launching.launcher import Launcher\n"
        f"launcher = Launcher(artifact(tensor_maps=(), program_axes={axes}), 0x4000, 0)\n"
        "for grid in ((4, 4, 64), (3, 5, 7), (1, 1, 1)): launcher.launch_anywhere(*grid, 0, (16, 2, 3, 1.0))\n"
    )
    launches = with_stub(code, tmp_path, (8, 4, 8, 4, *(4,) * axes))
    counts = [tuple(int.from_bytes(bytes.fromhex(word), "little") for word in words[10:]) for words in launches]
    assert [(*map(int, words[:3]), *told) for words, told in zip(launches, counts, strict=True)] == expected


def test_a_thread_without_a_context_gets_one(tmp_path: Path) -> None:
    code = (
        "from test_launching import artifact\nfrom tilewright.runtime.launching.launcher import Launcher\n"
        "from tilewright.runtime.driver import bindings\n"
        "launcher = Launcher(artifact(tensor_maps=()), 0x4000, 0)\nbindings().cuCtxSetCurrent(0)\n"
        "launcher.launch_anywhere(1, 1, 1, 0, (16, 2, 3, 1.0))\n"
    )
    assert len(with_stub(code, tmp_path, (8, 4))) == 1


class OnGpu:
    """Memory that says it lies on device 0."""

    def __init__(self, count: int) -> None:
        self.memory = np.zeros(count, np.float32)
        interface = {"shape": (count,), "typestr": "<f4", "data": (self.memory.ctypes.data, False), "version": 3}
        self.__cuda_array_interface__ = interface


@triton.jit
def scaled(x_ptr, n, small: tl.int8, scale, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * scale + small, mask=i < n)


@triton.jit
def add_to(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i) + tl.load(y_ptr + i))


def test_a_whole_launch(tmp_path: Path) -> None:
    code = (
        "from test_launching import OnGpu, scaled\nx = OnGpu(64)\n"
        "for n in (64, 50): compiled = scaled[lambda meta: (meta['n'],)](x, n, 300, 1e39, BLOCK=64)\n"
        "assert compiled.asm['cubin'][:4] == b'\\x7fELF'\n"
        "print(scaled[(0, 1)](x, 64, 3, 2.0, BLOCK=64))\n"
    )
    launches = with_stub(code, tmp_path, (8, 4, 1, 4))
    assert [line[0] for line in launches] == ["64", "50"] and launches[0][3] == "128"
    assert struct.unpack("<ibf", b"".join(map(bytes.fromhex, launches[0][7:]))) == (64, 44, float("inf"))


def test_kinds_of_launches(tmp_path: Path) -> None:
    """Attributes reach the driver, in turn with ordinary launches; a cooperative grid that does not fit says what does."""
    code = (
        "from test_launching import OnGpu, scaled\nimport tilewright as triton\nx = OnGpu(64)\n"
        "for _ in range(2):\n"
        "    scaled[(5,)](x, 50, 1, 2.0, BLOCK=64)\n"
        "    scaled[(6,)](x, 50, 1, 2.0, BLOCK=64, launch_pdl=True)\n"
        "    scaled[(7, 2)](x, 50, 1, 2.0, BLOCK=64, launch_cooperative_grid=True, launch_pdl=True)\n"
        "try:\n    scaled[(7, 20)](x, 50, 1, 2.0, BLOCK=64, launch_cooperative_grid=True)\n"
        "except triton.LaunchError as error:\n"
        "    assert 'grid (7, 20, 1) of scaled has 140 programs, and device 0 holds 132 at once' in str(error), error\n"
        "else:\n    raise SystemExit('it fits')\n"
    )
    launches = with_stub(code, tmp_path, (8, 4, 1, 4))
    assert [(line[0], line[10:]) for line in launches] == [("5", []), ("6", ["@6=1"]), ("7", ["@2=1", "@6=1"])] * 2
    assert all(line[6:10] == launches[0][6:10] for line in launches)


def test_several_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel is loaded once on each device that its arrays lie on, and launched there, whichever is current."""
    monkeypatch.setenv("STUB_DEVICES", "2")
    code = (
        "import types\nfrom test_launching import OnGpu, add_to, scaled\nimport tilewright as triton\n"
        "from tilewright.runtime.driver import bindings\n"
        "def on(device):\n    x = OnGpu(64)\n    x.device = types.SimpleNamespace(id=device)\n    return x\n"
        "zero, one = on(0), on(1)\n"
        "for current in (0, 1):\n"
        "    bindings().cuCtxSetCurrent(0x1000 + current)\n"
        "    for turn in range(2):\n"
        "        assert scaled[(3,)](zero, 64, 1, 2.0, BLOCK=64).device == 0\n"
        "        assert scaled[(4,)](one, 64, 1, 2.0, BLOCK=64).device == 1\n"
        "    assert bindings().cuCtxGetDevice() == (0, current)\n"
        "assert sorted(found.device for found in scaled.compilations.made.values()) == [0, 1]\n"
        "bindings().cuCtxSetCurrent(0)\n"  # a thread without a context: device 0 becomes current, device 1 never does
        "scaled[(5,)](one, 64, 1, 2.0, BLOCK=64)\nassert bindings().cuCtxGetCurrent() == (0, 0)\n"
        "scaled[(6,)](zero, 64, 1, 2.0, BLOCK=64)\nassert bindings().cuCtxGetCurrent() == (0, 0x1000)\n"
        "try:\n    add_to[(1,)](zero, one, BLOCK=64)\n"
        "except triton.LaunchError as error:\n"
        "    assert 'x_ptr on cuda:0, y_ptr on cuda:1; move them' in str(error), error\n"
        "else:\n    raise SystemExit('arrays of two devices were taken')\n"
    )
    assert [line[0] for line in with_stub(code, tmp_path, (8, 4, 1, 4))] == [*["3", "4"] * 4, "5", "6"]


def test_whose_stream_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's, unless all arrays are CuPy's; CuPy's without torch; else CUDA's default stream."""
    cupy = SimpleNamespace(cuda=SimpleNamespace(get_current_stream=lambda device: SimpleNamespace(ptr=200 + device)))
    torch = SimpleNamespace(
        cuda=SimpleNamespace(is_initialized=lambda: True),
        _C=SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 100 + device),
    )
    cases = [
        ((None, None), {"torch": 0, "cupy": 0, "": 0}),
        ((torch, None), {"torch": 101, "cupy": 101, "": 101}),
        ((None, cupy), {"torch": 201, "cupy": 201, "": 201}),
        ((torch, cupy), {"torch": 101, "cupy": 201, "numpy": 101, "": 101}),
    ]
    for modules, expected in cases:
        for name, module in zip(("torch", "cupy"), modules, strict=True):
            monkeypatch.setitem(sys.modules, name, module)
        found = {library: driver.current_stream(1, {library} if library else ()) for library in expected}
        assert found == expected, modules
    assert driver.current_stream(1, {"torch", "cupy"}) == 101
    for half in (SimpleNamespace(), SimpleNamespace(cuda=SimpleNamespace())):  # while another thread imports it
        monkeypatch.setitem(sys.modules, "torch", half)
        assert driver.current_stream(1) == 201 and driver.torch_on_gpu() is None


@pytest.mark.parametrize("mode", ("cpu", "check", "interpret"))
def test_programs_that_wait_for_each_other_need_a_gpu(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x = np.ones(64, np.float32)
    with pytest.raises(CooperativeGridError, match="a cooperative grid of 2 programs needs a GPU"):
        scaled[(2,)](x, 64, 3, 2.0, BLOCK=64, launch_cooperative_grid=True)
    scaled[(1,)](x, 64, 3, 2.0, BLOCK=64, launch_cooperative_grid=True)
    assert (x == 5).all()


def test_the_forms_of_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    compiled = scaled.compile("*fp32:16, i32, i8, fp32, 64", num_warps=2)
    assert (
        compiled.metadata.num_warps == 2 and compiled.metadata.name == "scaled" and compiled.metadata.target == "sm_90a"
    )
    assert list(compiled.asm) == ["cu", "ptx", "cubin", "sass"] and compiled.asm["cu"] == compiled.source
    with pytest.raises(KeyError, match="it has cu, ptx, cubin, sass"):
        compiled.asm["ttir"]
    x = np.arange(64, dtype=np.float32)
    compiled[(1,)](x, 5, 3, 2.0, 64)
    assert list(x[:6]) == [3, 5, 7, 9, 11, 5]
    for wrong in ((x.astype(np.float64), 5, 3, 2.0, 64), (x, 16, 3, 2.0, 64), (x, 5, 3, 2.0, 32)):
        with pytest.raises(ArgumentKindError, match="another specialisation of scaled"):
            compiled[(1,)](*wrong)
    for _ in range(2):  # of options of a launch there may be those that it was compiled with
        assert compiled[(1,)](x, 5, 3, 2.0, 64, num_warps=2) is compiled
        with pytest.raises(ArgumentKindError, match="another specialisation of scaled"):
            compiled[(1,)](x, 5, 3, 2.0, 64, num_warps=4)
    if nvrtc.is_available():
        assert ".entry scaled(" in str(compiled.asm["ptx"]) and bytes(compiled.asm["cubin"])[:4] == b"\x7fELF"
        monkeypatch.setattr(assembly, "_find", lambda tool: None)
        with pytest.raises(ToolchainError, match="needs CUDA's nvdisasm or cuobjdump"):
            compiled.asm["sass"]
        monkeypatch.undo()
        if assembly._find("nvdisasm") or assembly._find("cuobjdump"):
            assert "EXIT" in str(compiled.asm["sass"])


def test_machine_code_is_shown_by_the_tool_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.tools import disasm

    tool = tmp_path / "nvdisasm"
    tool.write_text('#!/bin/sh\necho "flags $1"; cat "$2"\n')
    tool.chmod(0o755)
    monkeypatch.setattr(assembly, "_find", lambda name: str(tool) if name == "nvdisasm" else None)
    (tmp_path / "one.cubin").write_bytes(b"EXIT;")
    assert disasm.get_sass(b"EXIT;") == disasm.extract(tmp_path / "one.cubin") == "flags -c\nEXIT;"
    tool.write_text("#!/bin/sh\necho 'no code' >&2; exit 1\n")
    with pytest.raises(ToolchainError, match="cannot read the machine code: no code"):
        disasm.get_sass(b"nothing")


def test_toolkits_are_found_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty variable names none, not the folder that a program happens to run in."""
    tool = tmp_path / "bin" / "nvdisasm"
    tool.parent.mkdir()
    tool.touch(0o755)
    monkeypatch.chdir(tmp_path)
    for home, path, named in (("", "", []), (str(tmp_path), "", [tmp_path]), ("", str(tmp_path), [tmp_path])):
        monkeypatch.setenv("CUDA_HOME", home)
        monkeypatch.setenv("CUDA_PATH", path)
        assert nvrtc.named_toolkits() == named
        assert (assembly._find("nvdisasm") == str(tool)) == bool(named) or assembly.shutil.which("nvdisasm")


def test_values_that_do_not_fit_wrap_and_round() -> None:
    elements = [dtypes.int8, dtypes.uint16, dtypes.bfloat16, dtypes.float16, dtypes.int1, dtypes.float64]
    parameters = [LaunchParameter(str(element), element, (0,)) for element in elements]
    values = in_range(parameters, [200, -1, 1.00390625, -1e9, 7, 1])
    assert values == [-56, 65535, b"\x80\x3f", float("-inf"), True, 1.0]
    halves = in_range([parameters[2]] * 4, [1.01171875, float("nan"), float("inf"), 3])
    assert halves == [b"\x82\x3f", b"\xc0\x7f", b"\x80\x7f", b"\x40\x40"]
    with pytest.raises(struct.error):  # what is packed first, values as they are, must not take an integer for the bits
        struct.pack(code_of(dtypes.bfloat16), 3)
    assert lay_out(parameters, 0).packer.size == lay_out(parameters, 0).size - 8 * len(parameters)


@pytest.mark.parametrize(
    ("map_changes", "shape_changes", "rule"),
    [
        ({}, {"address": 8}, "aligned to 16 bytes and lies at 0x8"),
        ({}, {"strides": (24,)}, "every stride must be a multiple of 16 bytes"),
        ({}, {"strides": (2**40,)}, "below 2^40"),
        ({}, {"sizes": (64, 0)}, "every size must be from 1"),
        ({"box": (64, 512)}, {}, "1 to 256 elements"),
        ({"box": (4, 64)}, {}, "multiple of 16 bytes and has 8"),
        ({"box": (128, 64)}, {}, "256 bytes, must fit into the swizzle"),
        ({"swizzle": 48}, {}, "0, 32, 64 or 128"),
        ({"box": ()}, {}, "1 to 5 dimensions, this one 0"),
    ],
)
def test_a_map_that_the_hardware_cannot_take_is_named(
    map_changes: dict[str, Any], shape_changes: dict[str, Any], rule: str
) -> None:
    good = artifact().tensor_maps[0]
    check_rules(Shape(good, 0x100, (64, 256), (128,)))
    if map_changes.get("box") == ():
        map_changes["box"], good = (8,) * 6, dataclasses.replace(good, sizes=("8",) * 6)
        rule = rule.replace("one 0", "one 6")
        shape_changes = {"sizes": (8,) * 6}
    shape = Shape(
        dataclasses.replace(good, **map_changes),
        **{"address": 0x100, "sizes": (64, 256), "strides": (128,), **shape_changes},
    )
    with pytest.raises(TensorMapError, match=f"a_map over a_ptr.*{rule}".replace("^", r"\^")):
        check_rules(shape)


def test_encodings_are_kept_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[Shape] = []

    def encode(shape: Shape) -> tensor_maps.Encoding:
        encoded.append(shape)
        return tensor_maps.Encoding(len(encoded))

    monkeypatch.setattr(tensor_maps, "encode", encode)
    monkeypatch.setattr(tensor_maps, "KEPT", 4)
    encoder = Encoder(artifact())
    assert encoder.encode((0x100, 128, 64, 1.5)) == encoder.encode((0x100, 128, 64, 2.5)) == [1, 2]
    assert encoder.encode((0x100, 128, 32, 1.5)) == [3, 2] and encoded[2].strides == (64,)
    for address in range(0x200, 0x600, 0x100):
        encoder.encode((address, 128, 64, 1.5))
    assert encoder.encode((0x500, 128, 64, 1.5)) == [10, 11] and encoder.encode((0x100, 128, 64, 1.5)) == [12, 13]


def test_maps_of_unknown_names_are_errors() -> None:
    first = artifact().tensor_maps[0]
    with pytest.raises(TensorMapError, match="starts at b_ptr"):
        Encoder(artifact(tensor_maps=(dataclasses.replace(first, base="b_ptr"),)))
    with pytest.raises(HostExpressionError, match="scale is no integer argument"):
        Encoder(artifact(tensor_maps=(dataclasses.replace(first, sizes=("64", "scale")),)))


# ------------------------------------------------------------------------------------------------------------ guards


@triton.jit
def doubled(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """Translations carry a guard on n; the list gets the options of each."""
    from tilewright import pipeline

    translations: list[Options] = []
    original: Callable[..., Artifact] = pipeline.translate

    def translate(function: Any, arguments: Any, options: Options, *others: Any) -> Artifact:
        translations.append(options)
        made = original(function, arguments, options, *others)
        return dataclasses.replace(made, guards=("n % 32 == 0", "n < 100")) if options.guards else made

    monkeypatch.setattr(pipeline, "translate", translate)
    return translations


@pytest.mark.parametrize("mode", ("cpu", "check"))
def test_a_launch_takes_the_text_that_its_values_allow(
    mode: str, guarded: list[Options], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    kernel = triton.JITFunction(doubled.fn)
    x = np.ones(64, np.float32)
    taken = [kernel[(1,)](x, n, BLOCK=64).metadata.guards for n in (64, 32, 48, 160, 50)]
    assert taken == [True, True, False, False, False] and x[0] == 32 and x[63] == 4
    # 64, 32, 48 and 160 share a specialisation, 50 has another: each is translated with guards, and without when needed.
    assert [options.guards for options in guarded] == [True, False, True, False]
    assert kernel.warmup(x, 32, BLOCK=64).metadata.guards and not kernel.warmup(x, 48, BLOCK=64).metadata.guards
    assert len(guarded) == 4


def test_text_without_guards_can_be_asked_for(guarded: list[Options], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    assert (
        doubled.translate("*fp32:16, i32, 64").guards
        and not doubled.translate("*fp32:16, i32, 64", guards=False).guards
    )
    kernel = triton.JITFunction(doubled.fn)
    assert not kernel[(1,)](np.ones(64, np.float32), 64, BLOCK=64, guards=False).metadata.guards


def test_modules_of_the_runtime_are_reached_without_importing_them() -> None:
    lines = (
        "import tilewright as t",
        "print(t.runtime.autotuner.Autotuner, t.runtime.errors.OutOfResources, t.runtime.jit)",
    )
    result = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=120)
    assert "Autotuner" in result.stdout and "OutOfResources" in result.stdout, result.stderr
