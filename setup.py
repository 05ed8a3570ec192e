"""The one part of the package that is compiled, where it can be, and what a wheel leaves out; all else is in pyproject.toml."""

import ast
import io
import os
import sys
import sysconfig
import tokenize
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

# Python's stable interface, which builds without the interpreter's lock do not have. There, and where there is no C compiler,
# the package is built without this part; launches then do the same in Python, which takes longer.
HAS_STABLE_INTERFACE = (
    sys.implementation.name == "cpython" and sys.maxsize > 2**32 and not sysconfig.get_config_var("Py_GIL_DISABLED")
)
QUICK_LAUNCH = Extension(
    "tilewright.runtime.quick_launch",
    ["runtime/quick_launch.c", "runtime/quick_call.c"],
    depends=["runtime/quick_launch.h"],
    # Python's own flags ask for what debuggers read, which would be half of the file.
    extra_compile_args=[] if sys.platform == "win32" else ["-g0", "-fvisibility=hidden"],
    # Nor does anyone ask for the names of its functions, or which build it is.
    extra_link_args=["-s", "-Wl,--build-id=none"] if sys.platform == "linux" else [],
    optional=True,
    py_limited_api=True,
)


# Packages that users import nothing from. Wheels, which are to stay below 1 MiB, have no docstrings of what is defined there,
# of modules the first line, and no lines of comments.
INNER = (
    *(f"tilewright.{name}" for name in "ir ops frontend analysis schedule lower emit interpreter".split()),
    *(f"tilewright.runtime.{name}" for name in "arguments building cpu launching".split()),
)


def without_words(text: str) -> str:
    """The text of a module without the docstrings of its functions and classes, and comments; every line keeps its number."""
    lines = text.splitlines(keepends=True)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
            lines[token.start[0] - 1] = "\n"
    module = ast.parse(text)
    if "\n" in (ast.get_docstring(module) or "") and module.body[1:]:
        own = module.body[0]
        lines[own.lineno - 1] = lines[own.lineno - 1].rstrip() + '"""\n'
        lines[own.lineno : own.end_lineno] = ["\n"] * ((own.end_lineno or 0) - own.lineno)
    for node in ast.walk(module):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None and node.body[1:]:
            for number in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1):
                lines[number - 1] = "\n"
    return "".join(lines)


class Build(build_py):
    """Copies modules; those of inner packages without words, unless the installation is of the checkout itself."""

    def build_module(self, module: str, module_file: str, package: str) -> tuple[str, bool]:
        """Where it was copied to, and whether it was."""
        copy, is_new = super().build_module(module, module_file, package)
        if is_new and not self.editable_mode and f"{package}.".startswith(tuple(f"{one}." for one in INNER)):
            text = Path(module_file).read_text(encoding="utf-8")
            Path(copy).write_text(without_words(text), encoding="utf-8", newline="\n")
        return copy, is_new


class Wheel(bdist_wheel):
    """A wheel for this kind of machine and any later Python; one for all machines where nothing could be compiled."""

    def get_tag(self) -> tuple[str, str, str]:
        """The three parts of the tag."""
        compiled = self.get_finalized_command("build_ext").get_outputs()
        is_there = bool(compiled) and all(map(os.path.exists, compiled))
        return super().get_tag() if is_there else ("py3", "none", "any")


setup(
    ext_modules=[QUICK_LAUNCH] if HAS_STABLE_INTERFACE else [],
    options={"bdist_wheel": {"py_limited_api": "cp310"}} if HAS_STABLE_INTERFACE else {},
    cmdclass={"bdist_wheel": Wheel, "build_py": Build},
)
