"""Jinja's environment over the templates, and where their compiled form is kept: beside that of Python's modules.

A template is compiled when an installation first needs it. Its bytecode lies in `templates/__pycache__`, or where Python is told
to keep bytecode, under the same settings as Python's: `PYTHONPYCACHEPREFIX`, `PYTHONDONTWRITEBYTECODE`.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pkgutil
import sys
from importlib import import_module
from importlib.util import cache_from_source
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jinja2

PACKAGE = "tilewright.templates"
SETTINGS: Any = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": False, "autoescape": False}


@functools.cache
def environment() -> jinja2.Environment:
    """The templates, strict about names that they do not get."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(text_of), undefined=jinja2.StrictUndefined, bytecode_cache=_bytecode(), **SETTINGS
    )


@functools.cache
def text_of(name: str) -> str:
    """The text of a template."""
    return (pkgutil.get_data(PACKAGE, name) or b"").decode()


def filled(name: str, values: dict[str, Any]) -> str:
    """A template with its values; most helpers are plain text, which need not be compiled."""
    text = text_of(name)
    return environment().get_template(name).render(**values) if "{{" in text or "{%" in text else text


def _bytecode() -> jinja2.BytecodeCache | None:
    """Keeps compiled templates; None where they lie in no folder."""
    import jinja2

    class Kept(jinja2.FileSystemBytecodeCache):
        def get_source_checksum(self, source: str) -> str:
            return str(super().get_source_checksum(f"{compiler} {SETTINGS} {source}"))

        def load_bytecode(self, bucket: Any) -> None:
            with contextlib.suppress(OSError):
                super().load_bytecode(bucket)

        def dump_bytecode(self, bucket: Any) -> None:
            if not sys.dont_write_bytecode:
                with contextlib.suppress(OSError):  # as where an installation belongs to somebody else
                    super().dump_bytecode(bucket)

    try:
        beside = cache_from_source(import_module(PACKAGE).__file__ or "")
        facts = os.stat(jinja2.compiler.__file__)
    except (OSError, NotImplementedError):
        return None
    compiler = (facts.st_size, facts.st_mtime_ns)  # another version of Jinja may compile otherwise
    return Kept(os.path.dirname(beside), "%s.jinja")
