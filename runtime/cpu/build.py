"""Builds generated text with the host's C++ compiler: a shared library for runs, a program for checks.

In: an `Artifact`. Out: the path of the built file, from a cache that is keyed by everything that goes into it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from tilewright.artifact import SHARED_BYTES, Artifact, shared_declaration
from tilewright.diagnostics import ToolchainError
from tilewright.frozen import frozen
from tilewright.ir.c_names import RESERVED
from tilewright.ir.c_tokens import code_of, in_code
from tilewright.language.dtypes import DType, PointerType
from tilewright.runtime.building import store
from tilewright.runtime.building.folders import bound_bytes, cache_folder, temporary_folder
from tilewright.runtime.cpu.ptx import without_ptx
from tilewright.runtime.forks import preparing

COMPILERS = ("c++", "g++", "clang++")
FLAGS = ("-std=c++17", "-O1", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-w", "-fPIC")
RUN_HEADER, CHECK_HEADER = "all_words.h", "check_main.h"  # what comes before the text
RUN_FLAGS = ("-fstack-clash-protection",)  # a stack that is full is met at its guard, not behind it
SANITIZERS = {
    "memory": ("-g", "-fsanitize=address,alignment", "-fno-sanitize-recover=alignment", "-fno-omit-frame-pointer"),
    "races": ("-g", "-fsanitize=thread"),
}
RUN, STACKS = (
    "tilewright.run",
    "tilewright.stacks",
)  # functions of a library; with a dot, so that no kernel is called so
IN_USE_SECONDS = 60.0  # what was used so lately may be about to be opened
WORD = re.compile(r"\b[A-Za-z]\w*")


@frozen
class Recipe:
    """What is made of a text.

    Attributes:
      file: what that is called.
      header: comes before the text.
      flags: options of the compiler for both; the header is compiled beforehand with them.
      more: options for the text alone.
    """

    file: str
    header: str
    flags: tuple[str, ...]
    more: tuple[str, ...] = ()

    @property
    def options(self) -> tuple[str, ...]:
        """All options for the text."""
        return (*self.flags, "-I", str(headers()), "-include", self.header, *self.more)


LIBRARY = Recipe("kernel.so", RUN_HEADER, FLAGS, (*RUN_FLAGS, "-shared"))
CHECKS = {
    sanitizer: Recipe("kernel.run", CHECK_HEADER, (*FLAGS, *flags), ("-include", "kernel_words.h"))
    for sanitizer, flags in SANITIZERS.items()
}


@functools.cache
def compiler() -> str:
    """The host's C++ compiler: $CXX, or the first of the usual names.

    Raises:
      ToolchainError: when there is none, or on a system that the CPU run is not made for.
    """
    if not sys.platform.startswith("linux"):
        raise ToolchainError(
            f"the CPU run needs Linux, and this is {sys.platform}; set TILEWRIGHT_MODE=interpret to run kernels in Python"
        )
    for name in (os.environ.get("CXX"), *COMPILERS):
        if name and (path := shutil.which(name)):
            return path
    raise ToolchainError(
        "the CPU run needs a C++ compiler, and none of $CXX, c++, g++, clang++ was found; install g++ or clang++, or set "
        "TILEWRIGHT_MODE=interpret to run kernels in Python"
    )


def has_compiler() -> bool:
    """Whether a C++ compiler is there."""
    try:
        return bool(compiler())
    except ToolchainError:
        return False


@functools.cache
def headers() -> Path:
    """The folder of our headers."""
    return Path(str(resources.files("tilewright.runtime.cpu")))


@functools.cache
def fingerprint() -> str:
    """What besides text and flags decides the result: headers and compiler."""
    digest = hashlib.sha256()
    for path in sorted(headers().rglob("*.h")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    digest.update(subprocess.run([compiler(), "--version"], capture_output=True, check=False).stdout)
    return digest.hexdigest()


def entry_point(artifact: Artifact) -> str:
    """The C++ function that unpacks arguments of 8 bytes each, tensor maps' addresses last, and runs the grid.

    And one that takes stacks for the threads, which another kernel's library has made, or makes them: a gigabyte of addresses
    and two thousand mappings, of which a process has room for some thirty. Where the compiler's inline variables are one in
    all libraries of a process, as GCC's mostly are and Clang's are not, so are these.
    """
    arguments = [_unpacked(parameter.element, f"a[{i}]") for i, parameter in enumerate(artifact.launch_parameters)]
    arguments += [f"tilewright::loaded<TensorMap>(a[{len(arguments) + i}])" for i in range(len(artifact.tensor_maps))]
    memory = f"engine.shared = {SHARED_BYTES}, engine.shared_bytes = {artifact.shared_bytes}; "
    memory, proxies = memory if artifact.shared_alignment else "", str(artifact.proxy_reads).lower()
    return (
        "\nnamespace tilewright {\n"
        "const char* run_kernel(const Launch& launch, const unsigned long long* arguments)\n{\n"
        f"    {memory}engine.proxies = {proxies};\n"
        "    const auto entry = [](void* packed) {\n"
        "        const auto* a = static_cast<const unsigned long long*>(packed);\n"
        f"        (void)a; ::{artifact.kernel_name}({', '.join(arguments)});\n"
        "    };\n"
        f"    return run_grid(launch, {artifact.num_threads}, entry, const_cast<unsigned long long*>(arguments));\n}}\n"
        "const char* run(unsigned x, unsigned y, unsigned z, unsigned schedule, unsigned seed, unsigned delivery,\n"
        f'                const unsigned long long* arguments) asm("{RUN}");\n'
        "const char* run(unsigned x, unsigned y, unsigned z, unsigned schedule, unsigned seed, unsigned delivery,\n"
        "                const unsigned long long* arguments)\n"
        "{ return run_kernel({{x, y, z}, schedule, seed, delivery}, arguments); }\n"
        f'void* share_stacks(void* known) asm("{STACKS}");\n'
        "void* share_stacks(void* known)\n"
        "{ return engine.stacks = engine.stacks ? engine.stacks : known ? static_cast<char*>(known) : make_stacks(); }\n}\n"
    )


def _unpacked(element: DType | PointerType, place: str) -> str:
    if isinstance(element, PointerType):
        memory = "unsigned char" if element.element_ty.is_bool() else element.element_ty.cuda
        return f"reinterpret_cast<{memory}*>({place})"
    if element.is_floating():
        width = {64: "unsigned long long", 32: "unsigned", 16: "unsigned short"}[element.bits]
        return f"tilewright::bits<{element.cuda}>(static_cast<{width}>({place}))"
    return f"static_cast<{element.cuda}>({place})"


def host_text(artifact: Artifact) -> str:
    """The generated text as the host compiles it: unchanged, but for shared memory and PTX, and with an entry point."""
    before, text = _without_macros(artifact.source), artifact.source
    if artifact.shared_alignment:
        declaration, alignment = shared_declaration(artifact.shared_alignment), max(artifact.shared_alignment, 16)
        text = in_code(text, lambda code: code.replace(declaration, ""))
        size = -(-max(artifact.shared_bytes, 1) // alignment) * alignment
        before += f"alignas({alignment}) static unsigned char {SHARED_BYTES}[{size}];\n"
    return f"{before}#line 1\n{without_ptx(text)}{entry_point(artifact)}"


def _without_macros(text: str) -> str:
    """Forgets whatever macros of the system's headers, which the text does not include, are called as words of it."""
    kept = RESERVED | {"assert", "defined"}  # ours, as are those that begin with underscores, and the preprocessor's
    words = set(WORD.findall(code_of(text))) - kept
    return "".join(f"#undef {word}\n" for word in sorted(words))


@preparing()
def build_library(artifact: Artifact) -> Path:
    """The shared library of a kernel."""
    return _build(host_text(artifact), LIBRARY)


@preparing()
def build_check(artifact: Artifact, sanitizer: str) -> Path:
    """The checking program of a kernel; `sanitizer` is one of `SANITIZERS`."""
    main = "int main(int, char** arguments) { return tilewright::check_main(atoi(arguments[1]), atoi(arguments[2])); }"
    text = f"{host_text(artifact)}\n{main}\n"
    return _build(text, CHECKS[sanitizer])


def _build(text: str, recipe: Recipe) -> Path:
    """What the compiler makes of a text, built once.

    Raises:
      ToolchainError: when the compiler rejects the text, or nothing can be written.
    """
    try:
        return _found_or_built(text, recipe)
    except OSError as error:
        raise ToolchainError(f"the CPU run has to write what the compiler makes, and cannot: {error}") from error


def _found_or_built(text: str, recipe: Recipe) -> Path:
    key = hashlib.sha256("\0".join((text, repr(recipe.options), fingerprint())).encode()).hexdigest()
    root = cache_folder() / "cpu"
    built = store.place(root, key) / recipe.file
    if store.read(root, key) is not None:
        return built
    with store.sole_maker(root, key):
        if store.read(root, key) is not None:  # another process has made it meanwhile
            return built
        code = _compiled(text, recipe.options, _precompiled(recipe))
        try:
            store.write(root, key, {}, {recipe.file: code}, executable=True)
        except OSError:  # no room, for example
            root = temporary_folder(str(root))
            store.write(root, key, {}, {recipe.file: code}, executable=True)
    store.shrink(root, bound_bytes(), IN_USE_SECONDS, beside=_kept_headers())
    return store.place(root, key) / recipe.file


def _compiled(text: str, options: tuple[str, ...], ahead: Path) -> bytes:
    """The compiler's result, by a precompiled header in `ahead` if there is one that can be read.

    Raises:
      ToolchainError: with the compiler's words.
    """
    with tempfile.TemporaryDirectory(prefix="tilewright-") as scratch:
        source, result = Path(scratch) / "kernel.cu", Path(scratch) / "built"
        source.write_text(text, encoding="utf-8", newline="\n")
        for folders in ([ahead], []):
            include = [option for folder in (*folders, headers() / "include") for option in ("-I", str(folder))]
            command = [compiler(), *include, *options, "-x", "c++", "kernel.cu", "-o", "built"]
            done = subprocess.run(command, cwd=scratch, capture_output=True, check=False)
            if done.returncode == 0:
                if not folders:  # it was damaged
                    shutil.rmtree(ahead, ignore_errors=True)
                return result.read_bytes()
    said = done.stderr.decode("utf-8", "replace")[:4000] or "it has said nothing; $CXX names another one, as CXX=g++"
    raise ToolchainError(f"{command[0]} rejects the generated text, with status {done.returncode}:\n{said}")


def _precompiled(recipe: Recipe) -> Path:
    """A folder with the header as the recipe's flags compile it; the compiler finds ours if it is not there."""
    digest = hashlib.sha256((fingerprint() + repr(recipe.flags)).encode()).hexdigest()
    folder = cache_folder() / f"headers-{digest[:16]}"
    header = folder / f"{recipe.header}.gch"
    with contextlib.suppress(OSError):  # without room
        if header.exists():
            os.utime(header)  # used now
            return folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone_with(folder):
            if not header.exists():  # another process may have made it meanwhile
                _precompile(recipe, header)
    return folder


def _precompile(recipe: Recipe, header: Path) -> None:
    with tempfile.TemporaryDirectory(dir=header.parent, prefix=store.UNFINISHED) as scratch:
        result = Path(scratch) / header.name
        include = ("-I", str(headers() / "include"))
        command = [
            compiler(),
            *include,
            *recipe.flags,
            "-x",
            "c++-header",
            str(headers() / recipe.header),
            "-o",
            str(result),
        ]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode == 0:
            os.replace(result, header)


@contextlib.contextmanager
def _alone_with(folder: Path, patience: float = store.PATIENCE_SECONDS) -> Iterator[None]:
    """Keeps other processes from making a precompiled header; what those left that were killed goes."""
    with store.sole_maker(folder, "header", patience) as alone:
        if alone:
            store.remove_unfinished(folder, 0)
        yield


def header_folders() -> list[Path]:
    """The folders of precompiled headers, one for each compiler, version of ours and set of flags."""
    return sorted(cache_folder().glob("headers-*"))


def remove_headers(folder: Path) -> tuple[int, int]:
    """Takes precompiled headers away; how many files went, and their bytes."""
    with _alone_with(folder, patience=0):
        return store.remove_all(folder)


def _kept_headers() -> list[store.Entry]:
    """The precompiled headers as entries, which the bound counts and takes away as others."""
    found = []
    for folder in header_folders():
        with contextlib.suppress(OSError), _alone_with(folder, patience=0):
            used = max((file.stat().st_mtime for file in folder.glob("*.gch")), default=0.0)
            found.append(store.Entry(folder.name, folder, store.kept(folder)[1], used))
    return found
