"""Strings and comments of the user's that look like code: no pass takes them for it, and no fact is read out of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import ptx_kernels
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.emit.host import host_function, host_header
from tilewright.emit.wrap import WIDTH, wrap_code
from tilewright.ir import c_tokens
from tilewright.language import dtypes
from tilewright.language.dtypes import PointerType
from tilewright.runtime.cpu.build import host_text
from written_kernels import written_module

from unit.test_launching import artifact

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
ROW_MAJOR = "i32:16, i32:16, i32:16, i32:16, i32:1, i32:16, i32:1, i32:16, i32:1"
Write = Callable[[str], Any]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Makes the function `kernel` of a text, each in a file of one name."""
    numbers = itertools.count()

    def written(text: str) -> Any:
        (folder := tmp_path / str(next(numbers))).mkdir()
        return written_module(folder / "kernel.py", text)["kernel"]

    return written


# ----------------------------------------------------------------------------------------- facts beside the text


@triton.jit
def half_of(x):
    """With asm("nop") and shared_address(x) it would be quicker."""
    y = x * 0.5
    if y > 100.0:
        # asm volatile("")
        y = 100.0
    return y


@triton.jit
def talkative(
    x_ptr,
    o_ptr,
    n,  # __launch_bounds__(32)
    BLOCK: tl.constexpr,
):
    """As the CUDA version with __launch_bounds__(64, 8) did it: assert(x), printf("x"), #include <cmath>."""
    # extern __shared__ __align__(16) unsigned char shared_bytes[]; wgmma_wait<0>(); tma_store_2d(x);
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n)  # assert(x); printf("x"); encode_map
    s = half_of(tl.load(x_ptr))
    tl.store(o_ptr + cols, x * s, mask=cols < n)


def test_no_fact_is_read_out_of_comments(run_everywhere: Any) -> None:
    made = talkative.translate("*fp32:16, *fp32:16, i32:16, 1024", host=True)
    assert "__launch_bounds__(64, 8)" in made.source and made.threads == "NUM_THREADS"
    assert re.findall(r"config\.blockDim = (.*);", made.source) == ["NUM_THREADS"]
    assert "cassert" not in made.source and "cstdio" not in made.source and made.headers == ()
    assert (made.shared_alignment, made.proxy_reads) == (0, False)
    x = np.arange(1024, dtype=np.float32)
    np.testing.assert_array_equal(run_everywhere(talkative, (1,), x + 2, np.zeros_like(x), 1024, 1024)[1], x + 2)


@triton.jit
def bounded(x_ptr, ONE: tl.constexpr):  # ONE is no __launch_bounds__(32)
    tl.device_assert(tl.load(x_ptr) > 0, "printf(")
    tl.store(x_ptr, ONE)


def test_facts_of_kernels_with_other_bounds() -> None:
    by_registers = bounded.translate("*fp32:16, 1", host=True, maxnreg=64, num_warps=2, debug=True)
    assert "__maxnreg__(64)" in by_registers.source and "config.blockDim = 64;" in by_registers.source
    assert "<cassert>" in by_registers.source and "<cstdio>" not in by_registers.source
    assert re.search(r"\n//   constexpr +ONE = 1", host_header(by_registers))


def test_a_quotient_in_a_guard_begins_no_comment() -> None:
    text = host_function(artifact(guards=("M // 2 + stride * 4 < 500", "stride // M > 3")))
    assert "if (!(M_wide / 2 + stride_wide * 4 < 500)) return" in text and "if (!(stride / M > 3)) return" in text
    assert "const long long stride_wide = stride;" in text


def test_the_cpu_run_declares_shared_memory_where_the_code_does() -> None:
    declaration = "extern __shared__ __align__(1024) unsigned char shared_bytes[];"
    body = f"    // {declaration}\n    shared_bytes[threadIdx.x] = 1;\n    x_ptr[threadIdx.x] = shared_bytes[threadIdx.x];\n"
    probe = ptx_kernels.kernel(body, (), {"x_ptr": PointerType(dtypes.int32)}, shared_bytes=64)
    assert probe.source.count(declaration) == 2 and host_text(probe).count(declaration) == 1
    x = np.zeros(32, np.int32)
    ptx_kernels.run_probe(probe, x)
    assert x.tolist() == [1] * 32


# ----------------------------------------------------------------------------------------- strings in the text

VECTORS = """
@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n)
    tl.device_print("WORDS", x)
    tl.device_assert(x > 0, "WORDS")
    tl.store(o_ptr + cols, x, mask=cols < n)
"""
SCALARS = """
@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    tl.device_print("WORDS")
    if n > 7:
        tl.device_print("WORDS", n)
"""
TRIPS = """
@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(4):
        x = tl.load(x_ptr + k * BLOCK + cols)
        total += x * tl.sum(x)
        tl.device_print("WORDS")
    tl.store(o_ptr + cols, total, mask=cols < n)
"""


@pytest.mark.parametrize("block", [1024, 512])  # two vectors in each thread, and one
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (VECTORS, "x at cols[0] is bad"),
        (VECTORS, "cols"),
        (VECTORS, "&cols[7]"),
        (VECTORS, "assert(cols) // x"),
        (VECTORS, "static_cast<int>(blockIdx.x) __int_as_float(0xff800000)"),
        (VECTORS, "a   // b"),
        (VECTORS, "/* */ ( [ { if ("),
        (SCALARS, "lane tid"),
        (SCALARS, "num_programs __launch_bounds__(64) gridDim.x"),
        (TRIPS, "x_sum_partial is"),
        (TRIPS, "k trip0_of_loop0λ total x_sum"),
        (TRIPS, "an = x; x += 1; &x ++x"),
    ],
)
def test_strings_change_nothing_but_themselves(write: Write, text: str, words: str, block: int) -> None:
    words = f"{words}~"  # which no code has
    harmless = re.sub(r"[^\s~]", ".", words)
    signature = f"*fp32:16, *fp32:16, i32:16, {block}"
    one, other = (
        write(text.replace("WORDS", some)).translate(signature, debug=True).source for some in (words, harmless)
    )
    assert one.replace(words, harmless) == other
    assert other.count(harmless) >= 2 and one.count(words) == other.count(harmless)
    assert text is not TRIPS or "for (int k = 0; k < 4; ++k) {" in one


FORMS = """
@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    if n > 3:
        tl.device_print("a // b \\\\ \\" // c", x)
    tl.device_assert(x < 9, "not // 9; a very long message with a comment // behind it, with (brackets [and commas, and \\\\")
    tl.store(o_ptr + i, x)
"""


def test_strings_with_marks_of_comments_are_printed_as_they_are(
    write: Write, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = write(FORMS)
    text = kernel.translate("*fp32:16, *fp32:16, i32, 128", debug=True).source
    assert r'idx (%3d) a // b \\ \" // c: %f\n"' in text and '/""/' not in text
    assert r'not // 9; a very long message with a comment // behind it, with (brackets [and commas, and \\"' in text
    x = np.arange(128, dtype=np.float32) % 4
    printed = []
    for mode in ("cpu", "interpret"):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        kernel[(1,)](x, np.zeros_like(x), 7, 128, debug=True)
        printed.append(sorted(capfd.readouterr().out.splitlines()))
    assert printed[0] == printed[1] and printed[0][0] == 'pid (0, 0, 0) idx (  0) a // b \\ " // c: 0.000000'


COMBINED = """
@triton.jit
def combine(a, b):
    # first remark // of two
    # and the second
    s = a + b
    if s > 3.0:
        # third "with, (quotes" ; remark
        s = 3.0
    return s

@triton.jit
def kernel(x_ptr, o_ptr, BLOCK: tl.constexpr):
    tl.store(o_ptr, tl.reduce(tl.load(x_ptr + tl.arange(0, BLOCK)), 0, combine))
"""


def test_comments_in_a_function_that_combines_keep_their_lines(write: Write) -> None:
    text = write(COMBINED).translate("*fp32:16, *fp32:16, 1024").source
    start = text.index(
        "// first remark // of two\n        // and the second\n        // L8: s = a + b\n        float s = a + b;"
    )
    assert '// third "with, (quotes" ; remark\n            // L11: s = 3.0\n            s = 3.0f;\n' in text[start:]


# ------------------------------------------------------------------------- every word of some texts, as a string

TEXTS = [
    ("vector_add", "add_kernel", "*fp32:16, *fp32:16, *fp32:16, i32, 1024", {}, "tl.store(out_ptr"),
    (
        "fused_softmax",
        "softmax_kernel",
        "*fp32:16, *fp32:16, i32:16, i32:16, i32, i32:16, 1, 4096",
        {"num_warps": 8},
        "cols =",
    ),
    ("rms_norm", "rms_norm_kernel", "*fp16:16, *fp16:16, *fp16:16, i32, i32, fp32, 1024", {}, "row ="),
    ("matmul", "matmul_kernel", f"*fp16:16, *fp16:16, *fp16:16, {ROW_MAJOR}, 128, 128, 64, 8, None", {}, "pid ="),
]


def with_print(sample: str, kernel: str, line: str, words: str) -> str:
    """A sample with its kernel under the name `kernel`, which prints some words before the first line that begins so."""
    text = (SAMPLES / f"{sample}.py").read_text(encoding="utf-8")
    start = text.index(f"def {kernel}(")
    first = re.search(rf"^    {re.escape(line)}", text[start:], re.MULTILINE)
    assert first is not None
    place = start + first.start()
    text = f'{text[:place]}    tl.device_print("{words}")\n{text[place:]}'
    lines = text[: text.index("\n\n\n", place)].replace(f"def {kernel}(", "def kernel(").splitlines()
    return "\n".join(line for line in lines if not re.match(r"(from|import) (?!math)", line))


@pytest.mark.parametrize(("sample", "kernel", "signature", "options", "line"), TEXTS, ids=[text[1] for text in TEXTS])
def test_no_word_of_a_text_means_anything_in_a_string(
    write: Write, sample: str, kernel: str, signature: str, options: dict[str, Any], line: str
) -> None:
    def translated(words: str) -> str:
        made = write(with_print(sample, kernel, line, words)).translate(signature, **options)
        return str(made.source)

    words = sorted(set(c_tokens.identifiers(translated("none"))))
    longest = max(map(len, words))
    plain = translated("." * (longest + 3))
    some = words if len(words) < 80 else words[:: len(words) // 16]
    for word in some:
        said = f"{word}[0]".ljust(longest + 3, ".")
        assert translated(said).replace(said, "." * len(said)) == plain, word
    together = " ".join(words)  # too long for a line: then the quote of the line is wrapped as the words are
    one, other = translated(together), translated(re.sub(r"\S", ".", together))
    assert c_tokens.code_of(one) == c_tokens.code_of(other) and f" {together}\\n" in one


def test_names_that_are_not_ascii_tell_trips_apart(run_everywhere: Any, write: Write) -> None:
    kernel = write(
        "@triton.jit\ndef kernel(x_ptr, o_ptr, ä: tl.constexpr, ü: tl.constexpr):\n    s = tl.load(x_ptr)\n"
        "    for k in tl.static_range(2):\n        s = s * (ä if k == 0 else ü) + 1.0\n    tl.store(o_ptr, s)\n"
    )
    x = np.ones(1, np.float32)
    assert run_everywhere(kernel, (1,), x, np.zeros_like(x), 3.5, 4.5)[1].tolist() == [(1 * 3.5 + 1) * 4.5 + 1]


# ------------------------------------------------------------------------------------------------ the functions

LINE = r"""x[i] = f(y.size, 1.0f, "a \" b // c", '"', λ2); // y "z" """


def test_what_is_code() -> None:
    assert c_tokens.identifiers(LINE) == ["x", "i", "f", "y", "λ2"]
    assert c_tokens.identifiers("a /* b\n c */ d // e\nf") == ["a", "d", "f"]
    assert c_tokens.renamed(LINE, str.upper) == LINE.replace("x[i] = f(y", "X[I] = F(Y").replace("λ2", "Λ2")
    assert c_tokens.split_comment(LINE) == (LINE[: LINE.index(" // y")], 'y "z"')
    assert c_tokens.split_comment('f("//");') == ('f("//");', "") and not c_tokens.has_comment('f("//");')
    assert c_tokens.split_comment("// a") == ("", "a") and c_tokens.has_comment("// a")
    assert len(c_tokens.blanked(LINE)) == len(LINE) and "//" not in c_tokens.blanked(LINE)


@pytest.mark.parametrize("code", [LINE, 'f("a b[0] \\\\", b.c, 0x1f, 1.5e3);', "ä + éa[1] << 2;", 'an "odd quote', ""])
def test_pieces_are_the_whole_line(code: str) -> None:
    assert "".join(c_tokens.pieces(code)) == code


@pytest.mark.parametrize(
    "string", ["a, b; c = d && (e", 'x \\" [[[, ((( ', "ends in \\\\", ")))) = ]]]", "   // no comment"]
)
def test_lines_break_outside_of_strings(string: str) -> None:
    words = f'"{string} {"s" * 60}"'
    lines = wrap_code(
        f"report({words}, first_of_the_values + second_of_the_values, third_of_the_values);", 8, "said // so"
    )
    plain = wrap_code(
        f'report("{"s" * (len(words) - 2)}", first_of_the_values + second_of_the_values, third_of_the_values);', 8
    )
    assert lines[0] == "        // said // so" and any(words in line for line in lines)
    assert [line.replace(words, "") for line in lines[1:]] == [re.sub('"s+"', "", line) for line in plain]
    assert max(map(len, lines)) <= WIDTH
