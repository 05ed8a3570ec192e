"""Names of functions, types and macros of C's headers and libraries, for kernels, constants and variables."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilewright.ir.c_names import can_be_global, can_be_local
from tilewright.runtime.cpu.build import compiler, has_compiler, headers
from written_kernels import written_module

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="no C++ compiler")
# What nvcc includes before a text, and what else a C++ program is likely to.
INCLUDED = "".join(
    f"#include <{name}.h>\n" for name in "math limits string time stdlib stddef assert stdio float stdint".split()
)


def _said(options: list[str], text: str) -> str:
    command = [compiler(), "-std=c++17", "-w", *options, "-x", "c++", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@needs_compiler
def test_macros_of_the_headers_are_no_variables() -> None:
    macros = re.findall(r"#define ([A-Za-z]\w*)", _said(["-E", "-dM"], INCLUDED))
    assert len(macros) > 300 and [name for name in macros if can_be_local(name)] == []


@needs_compiler
@pytest.mark.parametrize("form", ("constexpr int {} = 1;", 'extern "C" void {}(float*, int, float*, int) {{}}'))
@pytest.mark.parametrize("before", (INCLUDED, f'#include "{headers() / "all_words.h"}"\n'), ids=("C", "CPU run"))
def test_what_the_headers_declare_is_nothing_outside_of_functions(form: str, before: str) -> None:
    options = ["-I", str(headers() / "include")]
    macros = set(re.findall(r"#define (\w+)", _said([*options, "-E", "-dM"], before)))
    words = sorted(set(re.findall(r"\b[A-Za-z]\w+", _said([*options, "-E", "-P"], before))) - macros)
    ours = {word for word in words if can_be_global(word)}
    lines = "".join(f"{form.format(word)}\n" for word in words)
    said = _said([*options, "-fsyntax-only", "-fmax-errors=0"], f'{before}#line 1 "words"\n{lines}')
    taken = {words[int(line) - 1] for line in re.findall(r"^words:(\d+):\d+: error", said, re.MULTILINE)}
    assert len(taken) > 300 and taken & ours == set()


STEP = """
@triton.jit
def {name}(x_ptr, by, {constant}: tl.constexpr):
    {local} = tl.arange(0, 4)
    tl.store(x_ptr + {local}, tl.load(x_ptr + {local}) + by + {constant})
"""


@pytest.mark.parametrize(
    "name", "conj poll times step clone error stat fmul exit uint BUFSIZ MAXFLOAT atomicAdd pthread_x SIGINT x".split()
)
def test_names_of_the_system(run_everywhere: Any, tmp_path: Path, name: str) -> None:
    for of in ({"name": name}, {"constant": name}, {"local": name}):
        names = {"name": "kernel", "constant": "ADDED", "local": "i"} | of
        kernel = written_module(tmp_path / f"{'_'.join(of)}.py", STEP.format(**names))[names["name"]]
        (x,) = run_everywhere(kernel, (1,), np.zeros(4, np.int32), 2, 3)
        np.testing.assert_array_equal(x, [5] * 4)
