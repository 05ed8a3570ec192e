"""Results of tunings on disk: one file a subject in the cache, and files that people keep, review and load."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from tilewright.diagnostics import TunedFileError
from tilewright.frozen import frozen
from tilewright.runtime.building.file_lock import locked
from tilewright.runtime.building.folders import cache_folder
from tilewright.runtime.building.store import write_file
from tilewright.runtime.tracebacks import outermost, warn
from tilewright.runtime.tuning.subject import Subject

FORMAT = 1
PATIENCE = 600.0  # seconds to wait for a process that tunes the same; then everyone for himself
DIGITS = 5  # of a time in a file


@frozen
class Result:
    """What a tuning found. Configs stand as their text.

    Attributes:
      best: the fastest.
      milliseconds: median, 20th and 80th percentile of every config that ran.
      dropped: why the others did not.
      measured: False for a result that was read.
      module: the one that the kernel stands in, which tells it from others of its name in files of one name.
    """

    subject: Subject
    best: str
    milliseconds: dict[str, list[float]]
    dropped: dict[str, str]
    measured: bool = True
    module: str = ""


_recordings: list[list[Result]] = []
_loaded: dict[tuple[str, str, str], dict[str, str]] = {}  # the best configs by the digest of the kernel's text
_loaded_files: set[str] = set()


@contextlib.contextmanager
def recording() -> Iterator[list[Result]]:
    """Collects the results of all tunings inside; stored results are not read there."""
    found: list[Result] = []
    _recordings.append(found)
    try:
        yield found
    finally:
        _recordings[:] = [one for one in _recordings if one is not found]  # two may hold the same results


def is_recording() -> bool:
    """Whether results are being collected."""
    return bool(_recordings)


def record(result: Result) -> None:
    """Hands a result to those who collect."""
    for found in _recordings:
        found.append(result)


def stored_or_measured(subject: Subject, configs: Iterable[str], measure: Callable[[], Result]) -> Result:
    """The result of a subject: from the cache, or measured here, or by the process that is measuring it now.

    A result counts for the same list of configs only. What cannot be read is measured; what cannot be written is not kept.
    """
    configs = list(configs)
    listed = "\n".join(configs)
    name = hashlib.sha256("\0".join((repr(asdict(subject)), listed)).encode()).hexdigest()
    folder = cache_folder() / "tuned"
    path = folder / f"{name}.json"
    fresh = is_recording()
    found = None if fresh else _read(path, subject, configs)
    if found is not None:
        return found
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(path.with_suffix(".lock"), PATIENCE):
        found = None if fresh else _read(path, subject, configs)  # another process may have come first
        if found is None:
            found = measure()
            _write(path, found)
    return found


def _read(path: Path, subject: Subject, configs: Sequence[str]) -> Result | None:
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        rows = {str(name): [float(value) for value in row] for name, row in entry["milliseconds"].items()}
        found = Result(subject, entry["best"], rows, dict(entry["dropped"]), measured=False)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return found if found.best in configs else None


def _write(path: Path, result: Result) -> None:
    try:
        write_file(path, _json(_entry(result)).encode())
    except OSError as error:
        warn(f"the tuning cannot be stored ({error}); every process tunes anew", UserWarning)


def _entry(result: Result) -> dict[str, Any]:
    times = {name: [float(f"{value:.{DIGITS}g}") for value in row] for name, row in result.milliseconds.items()}
    module = {"module": result.module} if result.module else {}
    return {**asdict(result.subject), **module, "best": result.best, "milliseconds": times, "dropped": result.dropped}


# ---------------------------------------------------------------------------------------------------- files of people


def tuned_text(results: Iterable[Result], others: Iterable[dict[str, Any]] = ()) -> str:
    """A file of results as JSON, in an order of its own; `others` are entries that stay unless a result replaces them.

    Kernels of one name in files of one name stand beside each other. An entry of another text that was there before, of the
    same module, is taken for what the kernel was then.
    """
    found = {(_place(entry), entry["source"]): entry for entry in map(_entry, results)}
    modules: dict[tuple[str, str, str], set[str]] = {}
    for entry in found.values():
        modules.setdefault(_place(entry), set()).add(entry.get("module", ""))

    def is_replaced(entry: dict[str, Any]) -> bool:
        tuned, own = modules.get(_place(entry), set()), entry.get("module", "")
        return bool(tuned) and (not own or "" in tuned or own in tuned)

    found = {(_place(entry), entry["source"]): entry for entry in others if not is_replaced(entry)} | found
    return _json({"format": FORMAT, "results": [found[one] for one in sorted(found)]}) + "\n"


def _json(content: Any) -> str:
    """Indented, but for rows of numbers: lists that begin with a line break, which no string has in JSON."""
    text = json.dumps(content, indent=1)
    return re.sub(r"\[\n([\d\s.,e+-]+)\]", lambda row: f"[{' '.join(row[1].split())}]", text)


def _place(entry: dict[str, Any]) -> tuple[str, str, str]:
    return entry["kernel"], entry["device"], entry["key"]


def read_tuned(path: str | Path) -> list[dict[str, Any]]:
    """The entries of a file.

    Raises:
      TunedFileError: when it is not there or not such a file.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except TypeError as error:  # of None, for example
        raise TunedFileError(f"a file of tuned configs is named by a path, not by {path!r}") from error
    except OSError as error:
        raise TunedFileError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # the latter for brackets that nest too deep
        raise TunedFileError(f"{path} is no JSON: {error}") from error
    texts = {field.name for field in fields(Subject)} | {"best"}
    entries = content.get("results") if isinstance(content, dict) else None
    if not isinstance(entries, list) or content.get("format") != FORMAT:
        raise TunedFileError(
            f"{path} is no file of tuned configs (format {FORMAT}); `tilewright tune --save` writes one"
        )
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or not texts | {"milliseconds", "dropped"} <= entry.keys():
            needed = ", ".join(sorted(texts | {"milliseconds", "dropped"}))
            raise TunedFileError(f"{path}: result {number} lacks one of {needed}")
        for name in texts:
            if not isinstance(entry[name], str):
                raise TunedFileError(f"{path}: {name} of result {number} is no text")
    return entries


@outermost
def load_tuned(path: str | Path) -> None:
    """Takes the configs of a file for every kernel, device and key that stands in it; nothing is measured for these.

    Those of files that were loaded before stay, but where they are of the same text.

    Raises:
      TunedFileError: when it is not there or not such a file.
    """
    for entry in read_tuned(path):
        _loaded.setdefault(_place(entry), {})[entry["source"]] = entry["best"]


def loaded(subject: Subject) -> str | None:
    """The config that a loaded file, or the one that $TILEWRIGHT_TUNED names, has for a subject."""
    named = os.environ.get("TILEWRIGHT_TUNED")
    if named and named not in _loaded_files:
        load_tuned(named)
        _loaded_files.add(named)
    found = _loaded.get((subject.kernel, subject.device, subject.key), {})
    if found and subject.source not in found:
        warn(f"{subject.kernel} has changed since it was tuned for {subject.key}; it is tuned anew", UserWarning)
    return found.get(subject.source)
