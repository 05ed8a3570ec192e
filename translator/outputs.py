"""Files that a user names as output: never overwritten unless asked, and errors of ours where they cannot be written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .diagnostics import OutputExistsError, TilewrightError


def check_outputs(outputs: Sequence[Path], force: bool, remedy: str) -> None:
    """Refuses, before the first file is written, what must not be; `remedy` says how to overwrite.

    Raises:
      OutputExistsError: for a file that is there, unless `force`.
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


def write_output(output: Path, text: str) -> None:
    """Writes a file.

    Raises:
      TilewrightError: when the system does not let us.
    """
    try:
        output.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise TilewrightError(f"{output} cannot be written: {error.strerror}") from error
