"""Counts the instructions of everyday kernels, ours beside Triton's, without a GPU: where to look before a GPU is at hand.

usage: python benchmarks/instructions.py [--only WORD ...] [--arch sm_90a] [--most 40]

Needs Triton, NVRTC and nvdisasm. The kernels and options are those of everyday.py, at its large sizes but for cases that read
what their arrays hold. A line has registers, instructions in all and in the innermost loops, and accesses to memory of both; the
most of ours over Triton's comes first. More instructions are not more time: a kernel that waits for memory hides them.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from contest import load_both
from everyday import HERE, SOURCES
from everyday_cases import DEVICE, Problem

WORDS = {
    torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16", torch.float64: "fp64", torch.int8: "i8",
    torch.int16: "i16", torch.int32: "i32", torch.int64: "i64", torch.uint8: "u8", torch.bool: "i1",
    torch.float8_e4m3fn: "fp8e4nv", torch.float8_e5m2: "fp8e5",
}  # fmt: skip
OPTIONS = ("num_warps", "num_stages")
ALIGNMENT = 16
WIDEST_INT = 1 << 31
INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]{4,6}\*/\s+(.*?);")
LABEL = re.compile(r"(\.L_x_\d+):")
JUMP = re.compile(r"BRA\b.*`\((\.L_x_\d+)\)")
MEMORY = re.compile(r"LDG|STG|LDS|STS|LDL|STL|RED|ATOM|UTMA|LDGSTS")


@dataclass(frozen=True)
class Counts:
    """Of one kernel: registers of a thread, instructions, those in innermost loops, and those that access memory."""

    registers: int
    instructions: int
    in_loops: int
    memory: Counter[str]


def counts(sass: str, registers: int) -> Counts:
    """Counts the instructions of `nvdisasm -c`."""
    found, labels = list[str](), dict[str, int]()
    for line in sass.splitlines():
        if label := LABEL.match(line):
            labels[label[1]] = len(found)
        elif instruction := INSTRUCTION.match(line):
            found.append(instruction[1])
    loops = [(labels[jump[1]], at) for at, text in enumerate(found)
             if (jump := JUMP.search(text)) and labels.get(jump[1], at) < at]  # fmt: skip
    innermost = [(a, b) for a, b in loops if not any(a <= c and d <= b and (a, b) != (c, d) for c, d in loops)]
    words = [re.sub(r"^@!?U?P\w+ ", "", text).split()[0] for text in found]
    memory = Counter(word.split(".E")[0] for word in words if MEMORY.match(word))
    return Counts(registers, sum(word != "NOP" for word in words), sum(b - a + 1 for a, b in innermost), memory)


def classified(problem: Problem, kernel: Any) -> Iterator[tuple[Any, str, Any]]:
    """Every parameter of a kernel with its type, and its value if that is known at compile time.

    A type is as in a signature for Triton's compiler; ":16" tells pointers that are aligned, and integers that are multiples.
    """
    given = iter(problem.args)
    for parameter in kernel.params:
        value = problem.meta[parameter.name] if parameter.name in problem.meta else next(given, parameter.default)
        if parameter.is_constexpr or value is None:
            yield parameter, "constexpr", value
        elif isinstance(value, torch.Tensor):
            yield parameter, f"*{WORDS[value.dtype]}:16", None
        elif isinstance(value, float):
            yield parameter, "fp32", None
        elif value == 1:
            yield parameter, "constexpr", value
        else:
            word = "i32" if -WIDEST_INT <= value < WIDEST_INT else "i64"
            yield parameter, f"{word}:16" if value % ALIGNMENT == 0 else word, None


def ours(problem: Problem, kernel: Any, arch: str) -> Counts:
    """The counts of our machine code."""
    from tilewright.runtime.building import nvrtc
    from tilewright.tools.disasm import get_sass

    entries = [repr(value) if type_ == "constexpr" and parameter.is_constexpr else "i32:1" if type_ == "constexpr" else type_
               for parameter, type_, value in classified(problem, kernel)]  # fmt: skip
    options = {name: problem.meta[name] for name in OPTIONS if name in problem.meta}
    artifact = kernel.translate(", ".join(entries), arch=arch, **options)
    cubin = nvrtc.compile_text(artifact)
    return counts(get_sass(cubin.code), cubin.registers)


def theirs(problem: Problem, kernel: Any, arch: str) -> Counts:
    """The counts of Triton's machine code."""
    from tilewright.runtime.building.nvrtc import resources
    from tilewright.tools.disasm import get_sass
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler import compile as compiled

    known = list(classified(problem, kernel))
    signature = {parameter.name: type_.removesuffix(":16") for parameter, type_, _ in known}
    constants = {parameter.name: value for parameter, type_, value in known if type_ == "constexpr"}
    aligned = {(n,): [["tt.divisibility", ALIGNMENT]] for n, (_, type_, _) in enumerate(known) if type_.endswith(":16")}
    options = {name: problem.meta[name] for name in OPTIONS if name in problem.meta}
    target = GPUTarget("cuda", int(re.sub(r"\D", "", arch)), 32)
    made = compiled(ASTSource(kernel, signature, constants, aligned), target=target, options=options)
    registers, _ = resources(made.asm["cubin"], made.metadata.name, target.arch)
    return counts(get_sass(made.asm["cubin"]), registers)


def line(name: str, one: Counts, other: Counts) -> str:
    """A row of the table; accesses are those of which the two have different numbers."""
    different = sorted(word for word in one.memory | other.memory if one.memory[word] != other.memory[word])
    accesses = ", ".join(f"{word} {one.memory[word]}/{other.memory[word]}" for word in different)
    ratio = one.instructions / other.instructions
    pairs = [f"{getattr(one, field)}/{getattr(other, field)}" for field in ("registers", "instructions", "in_loops")]
    return f"| {name} | {ratio:.2f} | {' | '.join(pairs)} | {accesses} |"


def problem_of(build: Any, sizes: tuple[int, ...], small: tuple[int, ...]) -> tuple[Problem, tuple[int, ...]]:
    """The problem without memory; with little memory where it reads its arrays."""
    try:
        DEVICE[0] = "meta"
        return build(*sizes), sizes
    except (RuntimeError, NotImplementedError):
        DEVICE[0] = "cpu"
        return build(*small), small


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], help="kernels whose name has this in it")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--most", type=int, default=40, help="lines of the table")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for source, cases in SOURCES.items():
            modules = load_both(HERE / source, Path(folder))
            for build, large, small in cases:
                name = build.__name__
                if not any(word in name for word in options.only):
                    continue
                problem, sizes = problem_of(build, large, small)
                try:
                    both = [of(problem, getattr(modules[compiler], name), options.arch)
                            for compiler, of in (("tilewright", ours), ("triton", theirs))]  # fmt: skip
                except Exception as error:
                    print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
                    continue
                rows.append((both[0].instructions / both[1].instructions, f"{name} {'x'.join(map(str, sizes))}", *both))
    print(
        "| case | ours over Triton's | registers | instructions | in loops | accesses |", "| --- " * 6 + "|", sep="\n"
    )
    for _, name, one, other in sorted(rows, key=lambda row: row[0], reverse=True)[: options.most]:
        print(line(name, one, other))


if __name__ == "__main__":
    main()
