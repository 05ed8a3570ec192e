"""Files that a user names as output: never overwritten unless asked, and errors of ours where they cannot be written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .diagnostics import OutputExistsError, TilewrightError


def check_outputs(outputs: Sequence[Path], force: bool, remedy: str, program: Path | None = None) -> None:
    """Refuses, before the first file is written, what must not be; `remedy` says how to overwrite.

    Raises:
      OutputExistsError: for a file that is there, unless `force`, and for the user's `program` in any case.
      TilewrightError: for a directory, for one path twice, and for "-", which elsewhere means the standard output.
    """
    if Path("-") in outputs:
        raise TilewrightError("- is no name of a file; only the text of `tilewright translate` goes to standard output")
    if len({output.absolute() for output in outputs}) < len(outputs):
        raise TilewrightError(f"{outputs[0]} cannot be both the text and the header")
    for output in outputs:
        if output.is_dir():
            raise TilewrightError(f"{output} is a directory; write the name of a file in it, as {output / 'NAME'}")
        if output.exists() and not force:
            raise OutputExistsError(f"{output} exists; {remedy}")
        if program is not None and output.exists() and program.exists() and output.samefile(program):
            raise OutputExistsError(f"{output} is the program's own file, which is never overwritten")


def write_output(output: Path, text: str) -> None:
    """Writes a file, at once where it can be: one that was there before stays whole when the disk is full.

    Raises:
      TilewrightError: when the system does not let us.
    """
    try:
        if output.is_symlink() or (output.exists() and not output.is_file()):  # such as /dev/null
            output.write_text(text, encoding="utf-8", newline="\n")
            return
        number, beside = tempfile.mkstemp(prefix=f".{output.name}-", dir=output.parent)
        try:
            with open(number, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            os.chmod(beside, output.stat().st_mode & 0o777 if output.exists() else 0o666 & ~_mask())
            os.replace(beside, output)
        except BaseException:
            os.unlink(beside)
            raise
    except OSError as error:
        raise TilewrightError(f"{output} cannot be written: {error.strerror}") from error


def _mask() -> int:
    """What the process leaves out of the rights to files that it makes."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
