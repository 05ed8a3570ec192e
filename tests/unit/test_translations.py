"""Translations on disk: found again when nothing differs, and never when anything does."""

from __future__ import annotations

import gc
import importlib.util
import itertools
import json
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import pipeline
from tilewright.artifact import Artifact, Options
from tilewright.diagnostics import ArgumentError
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.runtime.building import store, translations
from tilewright.runtime.building.translations import translated
from tilewright.schedule.targets import find_target

SIGNATURE = "*fp32:16, i32, 64"
HEAD = "import math\n\nimport tilewright as triton\nimport tilewright.language as tl\n\n"
KERNEL = """
SCALE = 3
OTHER = (1, 2)


@triton.jit
def inner(x, FACTOR: tl.constexpr = 2):
    return x * FACTOR


@triton.jit
def outer(x):
    return inner(x) + OTHER[1]


@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, outer(x) * SCALE + min(BLOCK, 5) + math.sqrt(4.0), mask=i < n)
"""
_numbers = itertools.count()


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Any]:
    """Imports the text of a module, each time as another process would: `load(text)` is its `kernel`."""

    def loaded(text: str, name: str = "kernel", module: str = "kernels") -> Any:
        folder = tmp_path / str(next(_numbers))
        folder.mkdir()
        (folder / f"{module}.py").write_text(HEAD + text)
        spec = importlib.util.spec_from_file_location(module, folder / f"{module}.py")
        assert spec is not None and spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return getattr(made, name)

    return loaded


def look(
    kernel: Any, signature: str = SIGNATURE, arch: str = "sm_90a", options: Options | None = None
) -> tuple[Artifact, bool]:
    """The translation, and whether it was made now."""
    return translated(kernel, parse_signature(kernel, signature), options or Options(), find_target(arch))


def test_nothing_is_translated_twice(load: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    first, is_new = look(load(KERNEL))
    assert is_new
    monkeypatch.setattr(pipeline, "translate", None)
    kernel = load(KERNEL)
    second, is_new = look(kernel)
    assert not is_new and second == first
    assert second.lines == first.lines and second.readings == first.readings
    names = [[(owner.__name__, name) for owner, name, _ in one.globals] for one in (first, second)]
    assert names[0] == names[1] != []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tl.store(x_ptr + i, outer", "tl.store(x_ptr + i, 1 + outer"),  # the kernel's own text
        ("    x = tl.load", "    # a comment\n    x = tl.load"),  # it is in the generated text
        ("\nSCALE", "\n\nSCALE"),  # line numbers too
        ("return inner(x) + OTHER[1]", "return inner(x) - OTHER[1]"),  # a function that it calls
        ("return x * FACTOR", "return x / FACTOR"),  # a function that that one calls
        ("FACTOR: tl.constexpr = 2", "FACTOR: tl.constexpr = 4"),
        ("SCALE = 3", "SCALE = 4"),
        ("SCALE = 3", "SCALE = 3.0"),
        ("SCALE = 3", "SCALE = True + 2.5"),
        ("OTHER = (1, 2)", "OTHER = (1, 7)"),  # a global of the callee
        ("SCALE = 3", "SCALE = 3; min = max"),  # a function of Python that is hidden now
        ("SCALE = 3", "SCALE = 3; math = tl.math"),
        ("SCALE = 3", "SCALE = 3\nfrom tilewright.language import math as tl_math; math.sqrt = math.floor"),
    ],
)
def test_what_differs_is_translated(
    load: Callable[..., Any], old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import math

    monkeypatch.setattr(math, "sqrt", math.sqrt)  # put back at the end
    assert KERNEL.count(old) == 1 or old == "\nSCALE"
    look(load(KERNEL))
    changed = load(KERNEL.replace(old, new, 1))
    try:
        artifact, is_new = look(changed)
    except ArgumentError:
        is_new, artifact = True, None
    assert is_new and (artifact is None or not look(changed)[1])  # what is new takes the old one's place
    assert artifact is None or artifact.source == pipeline.translate(
        changed, parse_signature(changed, SIGNATURE), Options(), find_target("sm_90a")
    ).source  # fmt: skip


def test_a_callee_in_another_line_is_translated(load: Callable[..., Any]) -> None:
    look(load(KERNEL))
    down = KERNEL.replace("@triton.jit\ndef outer", "\n@triton.jit\ndef outer")
    moved = down.replace("\n\n\n@triton.jit\ndef kernel", "\n\n@triton.jit\ndef kernel")
    assert len(moved) == len(KERNEL) != len(down)
    assert look(load(moved))[1]


def test_specialisations_have_entries_of_their_own(load: Callable[..., Any]) -> None:
    kernel = load(KERNEL)
    wanted: list[tuple[str, str, Options]] = [
        (SIGNATURE, "sm_90a", Options()),
        ("*fp32, i32, 64", "sm_90a", Options()),
        ("*fp32:16, i32:16, 64", "sm_90a", Options()),
        ("*fp32:16, i64, 64", "sm_90a", Options()),
        ("*fp16:16, i32, 64", "sm_90a", Options()),
        ("*fp32:16, i32:1, 64", "sm_90a", Options()),
        ("*fp32:16, i32, 128", "sm_90a", Options()),
        (SIGNATURE, "sm_80", Options()),
        *((SIGNATURE, "sm_90a", replace(Options(), **{name: value})) for name, value in (
            ("num_warps", 8), ("num_stages", 2), ("maxnreg", 64), ("debug", True), ("guards", False),
            ("enable_fp_fusion", False), ("default_dot_input_precision", "ieee"))),
    ]  # fmt: skip
    for expected in (True, False):
        made = [look(kernel, *one) for one in wanted]
        assert [is_new for _, is_new in made] == [expected] * len(made)
    assert len(store.entries(translations.root())) == len(wanted)


def test_kernels_of_one_name_do_not_mix(load: Callable[..., Any]) -> None:
    one, other = KERNEL, KERNEL.replace("* SCALE", "- SCALE")
    texts = {look(load(text, module=module))[0].source for text in (one, other) for module in ("kernels", "others")}
    assert len(texts) == 4
    assert not look(load(one))[1] and not look(load(other))[1]


def test_another_translator_translates(load: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = load(KERNEL)
    assert look(kernel)[1] and not look(kernel)[1]
    monkeypatch.setattr(translations, "VERSION", "0.0.0")
    assert look(kernel)[1]
    monkeypatch.setattr(translations, "translator_digest", lambda: "another")
    assert look(kernel)[1] and not look(kernel)[1]


def test_files_of_the_translator_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "one.py").write_text("1")
    seen = [translations.files_below(str(tmp_path))]
    os.utime(tmp_path / "inner" / "one.py", ns=(1, 1))
    seen.append(translations.files_below(str(tmp_path)))
    (tmp_path / "inner" / "one.py").write_text("12")
    os.utime(tmp_path / "inner" / "one.py", ns=(1, 1))
    seen.append(translations.files_below(str(tmp_path)))
    (tmp_path / "two.j2").write_text("")
    seen.append(translations.files_below(str(tmp_path)))
    assert all(one != other for one, other in itertools.combinations(seen, 2))
    assert translations.files_below(str(tmp_path)) == seen[-1]
    own = {name for name, _, _ in translations.files_below(str(Path(pipeline.__file__).parent))}
    assert {"pipeline.py", "calls.py", "rings.py", "render.py"} <= own


@pytest.mark.parametrize("file", [store.FACTS, translations.TEXT])
def test_a_damaged_entry_is_none(load: Callable[..., Any], file: str) -> None:
    kernel = load(KERNEL)
    expected, _ = look(kernel)
    (entry,) = store.entries(translations.root())
    path = entry.folder / file
    whole = path.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], whole.replace(b"x_ptr", b"y_ptr")):
        path.write_bytes(damaged)
        assert look(kernel) == (expected, True)  # and puts the whole one back
        assert look(kernel) == (expected, False)
    path.unlink()
    assert look(kernel) == (expected, True)


def test_an_entry_of_another_form_is_none(load: Callable[..., Any]) -> None:
    kernel = load(KERNEL)
    expected, _ = look(kernel)
    (entry,) = store.entries(translations.root())
    found = store.read(translations.root(), entry.key)
    assert found is not None
    facts, files = found
    for changed in ({}, {**facts, "readings": [[["global", "SCALE"], "3"]]}, {**facts, "artifact": {}}):
        store.remove(translations.root(), entry.folder)
        store.write(translations.root(), entry.key, changed, files)
        assert look(kernel) == (expected, True)


FACTORY = """
def make(value):
    @triton.jit
    def kernel(x_ptr, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * value, mask=i < n)

    return kernel
"""


def test_variables_of_enclosing_functions_count(load: Callable[..., Any]) -> None:
    make = load(FACTORY, "make")
    three, four = look(make(3)), look(make(4))
    assert three[1] and four[1] and three[0].source != four[0].source
    assert look(make(3)) == (three[0], False) and look(make(4)) == (four[0], False)


UNTOLD = """
import random

def helper(value):
    return value + {number}

class Settings:
    scale = {number}

settings = Settings()

@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, {value}, mask=i < n)
"""


@pytest.mark.parametrize(
    "value",
    ["helper(1)", "settings.scale", "Settings.scale", "random.randint(1, 1 << 30)", "getattr(math, 'pi') * 1.0"],
)
def test_what_cannot_be_told_is_translated_each_time(load: Callable[..., Any], value: str) -> None:
    for number in (1, 1, 2):
        assert look(load(UNTOLD.format(number=number, value=value)))[1]
    assert not store.entries(translations.root())


@triton.jit
def talkative(x_ptr, n, BLOCK: tl.constexpr):
    tl.static_print("block", BLOCK)
    tl.store(x_ptr, n)


def test_kernels_that_print_when_they_are_translated_always_do(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert look(talkative)[1] and capsys.readouterr().out == "block 64\n"


@triton.jit
def talkative_of_all_kinds(x_ptr, d, BLOCK: tl.constexpr):
    block = tl.make_block_ptr(x_ptr, (BLOCK,), (1,), (0,), (16,), (0,))
    tl.static_print((1, x_ptr), BLOCK, tl.arange(0, BLOCK), block, d, d.load, sep=" | ")
    d.store([0, 0], d.load([0, 0]))


def test_what_is_printed_of_values_that_are_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    talkative_of_all_kinds.translate("*fp32:16, tensordesc<fp16[16, 32]>, 64")
    kinds = "(1, *fp32) | 64 | i32[64] | block pointer *fp32[16] | tensordesc<fp16[16, 32]> | method tensor_descriptor.load\n"
    assert capsys.readouterr().out == kinds


def test_members_of_modules_count(load: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import types

    constants: Any = types.ModuleType("constants")
    monkeypatch.setitem(sys.modules, "constants", constants)
    constants.SCALE = 2
    text = KERNEL.replace("SCALE = 3", "import constants").replace("* SCALE", "* constants.SCALE")
    assert look(load(text))[1] and not look(load(text))[1]
    constants.SCALE = 5
    artifact, is_new = look(load(text))
    assert is_new and "* 5" in artifact.source


PROGRAM = """
import sys
import weakref
sys.path.insert(0, {folder!r})
import numpy as np
from kernels import kernel
x = np.ones(64, np.float32)
for _ in range(2):
    kernel.warmup(x, 50, BLOCK=64)
print(sorted({{"libcst", "jinja2", "tilewright.pipeline", "tilewright.frontend"}} & set(sys.modules)))
"""


def test_a_second_process_imports_no_translator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    (tmp_path / "kernels.py").write_text(HEAD + KERNEL)
    command = [sys.executable, "-c", PROGRAM.format(folder=str(tmp_path))]
    said = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() for _ in range(2)]
    assert said == ["['jinja2', 'libcst', 'tilewright.frontend', 'tilewright.pipeline']", "[]"]


def test_what_a_translation_leaves_counts_as_old() -> None:
    """No collection looks at it as soon as there may be one again; what somebody keeps frozen stays so."""
    phases: list[str] = []
    with translations._without_collections():
        held = [[] for _ in range(100_000)]
    gc.callbacks.append(lambda phase, facts: phases.append(phase))
    try:
        held += [[] for _ in range(100)]
        assert gc.isenabled() and not phases
        gc.freeze()
        frozen = gc.get_freeze_count()
        with translations._without_collections():
            pass
        assert gc.get_freeze_count() > frozen - 100  # but for what went meanwhile
    finally:
        gc.callbacks.pop()
        gc.unfreeze()


def test_every_field_of_an_artifact_is_kept() -> None:
    """Two artifacts that differ in every field come back from JSON as they were."""
    from test_launching import artifact

    plain = artifact(tensor_maps=(), guards=(), readings=())
    full = artifact(
        kernel_name="other", target="sm_80", num_threads=64, shared_bytes=1, writes=("a_ptr",), lines=((3, "", 4),), file="f.py",
        parameters=plain.parameters[:2], program_axes=1, in_turns=True, cooperative=True, dependent=True,
        static_shared_bytes=4096, compiler_flags=("--fmad=false",), needs="sm_90a", readings=(), source="text",
        globals=(("m", "n", 1),), title="t", about=(("target", ("sm_80", "and later")),), headers=("cuda_fp16.h",),
        threads="NUM_THREADS", shared_alignment=128, proxy_reads=True, reaches=("num_programs_x * M",), for_many=True,
    )  # fmt: skip
    for field in fields(Artifact):
        same = field.name == "readings"  # which are kept beside
        assert same or getattr(plain, field.name) != getattr(full, field.name), f"{field.name}: not covered here"
    for one in (plain, full):
        found = translations._artifact(json.loads(json.dumps(translations._as_json(one))), one.source, one.globals, ())
        assert all(getattr(found, field.name) == getattr(one, field.name) for field in fields(Artifact))


def test_a_kernel_that_is_gone_leaves_nothing_behind(load: Callable[..., Any]) -> None:
    kernel = load(KERNEL)
    kernel.translate(SIGNATURE)
    gone = [weakref.ref(kernel), weakref.ref(kernel.fn.__globals__["inner"])]
    del kernel
    gc.collect()
    assert [one() for one in gone] == [None, None]
