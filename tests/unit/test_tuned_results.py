"""Tuned results: what stays on disk, what makes them void, files that are committed, several processes."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.cli import main
from tilewright.diagnostics import TunedFileError
from tilewright.runtime.tuning import store as autotune_store
from tilewright.runtime.tuning.store import Result
from tilewright.runtime.tuning.subject import Subject
from tuned_kernels import BLOCKS, N, copy, count_measurements, grid, increment, tuned


@pytest.fixture(autouse=True)
def fresh_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A cache of its own for every test, on the CPU."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setattr(autotune_store, "_loaded", {})


def test_results_stay_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    counted, x = count_measurements(monkeypatch), np.zeros(N, np.float32)
    first, second = tuned(increment), tuned(increment)
    first[grid](x, N)
    second[grid](x, N)
    assert len(counted) == 1 and (x == 2).all() and second.best_config == first.best_config
    assert second.configs_timings.keys() == first.configs_timings.keys() and second.bench_time == 0
    tuned(increment, BLOCKS[::-1])[grid](x, N)  # other candidates
    tuned(increment)[grid](np.zeros(N + 8, np.float32), N)  # another first call
    tuned(copy)[grid](x, x.copy(), N)  # another kernel
    tuned(increment, cache_results=False)[grid](x, N)
    assert len(counted) == 5
    (path, *_) = (tmp_path / "cache" / "tuned").glob("*.json")
    for damaged in ("", "{}", '{"best": 3}'):
        path.write_text(damaged)
    tuned(increment)[grid](x, N), tuned(increment, BLOCKS[::-1])[grid](x, N), tuned(copy)[grid](x, x.copy(), N)
    tuned(increment)[grid](np.zeros(N + 8, np.float32), N)
    assert len(counted) == 6
    assert json.loads(path.read_text())["best"] in {str(config) for config in BLOCKS}


SUBJECT = Subject("file.py:kernel", "0", "host", "(1,)", "", "")


def test_texts_stay_as_they_are_in_files() -> None:
    """Only rows of numbers lose their line breaks."""
    best = "SIDES: [ 1 20], TEXT: [1,\n 2]"  # as NumPy shows an array
    text = autotune_store.tuned_text([Result(SUBJECT, best, {best: [1.5, 2.0, 1e-7]}, {best: "[ 3 ]"})])
    (entry,) = json.loads(text)["results"]
    assert entry["best"] == best and entry["dropped"] == {best: "[ 3 ]"} and ": [1.5, 2.0, 1e-07]" in text


@pytest.mark.parametrize(
    "damaged",
    ['{"best": 3, "milliseconds": {}, "dropped": {}}', '{"best": "c", "milliseconds": {}, "dropped": {}}',
     '{"best": "a", "milliseconds": [], "dropped": {}}', '{"best": "a", "milliseconds": {"a": 1}, "dropped": {}}', "[]"],
)  # fmt: skip
def test_a_result_that_is_none_is_measured_anew(damaged: str, tmp_path: Path) -> None:
    def measure() -> Result:
        return Result(SUBJECT, "a", {"a": [1.0, 1.0, 1.0]}, {})

    autotune_store.stored_or_measured(SUBJECT, "ab", measure)
    (path,) = (tmp_path / "cache" / "tuned").glob("*.json")
    path.write_text(damaged)
    assert autotune_store.stored_or_measured(SUBJECT, "ab", measure).measured
    assert not autotune_store.stored_or_measured(SUBJECT, "ab", measure).measured


def test_a_tuned_file_that_is_missing_is_an_error_every_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_TUNED", str(tmp_path / "none.json"))
    for _ in range(2):
        with pytest.raises(TunedFileError, match="cannot be read"):
            autotune_store.loaded(SUBJECT)


def test_configs_that_differ_in_a_hook_alone_are_not_kept(tmp_path: Path) -> None:
    """A file has their text, which is the same: another process would take the last of them."""
    hooks = [lambda arguments: None, lambda arguments: None]
    configs = [triton.Config({"BLOCK": 512}, pre_hook=hook) for hook in hooks]
    kernel = tuned(increment, configs)
    kernel[grid](np.zeros(N, np.float32), N)
    assert kernel.best_config in configs and not list((tmp_path / "cache").glob("tuned/*"))


def test_a_change_of_what_is_called_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.runtime.tuning.subject import source_digest

    before = source_digest(calling)
    monkeypatch.setattr(helper, "_raw", helper.raw_src.replace("+ 1", "+ 2"))
    changed = source_digest(calling)
    monkeypatch.setitem(globals(), "OFFSET", 6)
    assert len({before, changed, source_digest(calling)}) == 3


OFFSET = 5


@triton.jit
def helper(x):
    return x + 1


@triton.jit
def calling(x_ptr):
    tl.store(x_ptr, helper(tl.load(x_ptr)) + OFFSET)


PROGRAM = """
import sys, numpy as np, tilewright as triton, tilewright.language as tl
from tilewright.runtime.tuning import measure as autotune_measure
real = autotune_measure.time_in_turns
autotune_measure.time_in_turns = lambda *a, **k: print("measured") or real(*a, **k)

@triton.autotune([triton.Config({"BLOCK": b}) for b in (64, 128)], key=["n"])
@triton.jit
def twice(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)

x = np.ones(500, np.float32)
twice[lambda meta: (triton.cdiv(500, meta["BLOCK"]),)](x, 500)
assert (x == 2).all()
print(twice.best_config)
"""


def test_one_of_eight_processes_measures(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    command = [sys.executable, str(script)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    lines = [process.communicate(timeout=300)[0].splitlines() for process in running]
    assert [process.returncode for process in running] == [0] * 8
    assert sum("measured" in line for line in lines) == 1
    assert len({line[-1] for line in lines}) == 1


def test_the_lock_does_not_wait_for_ever(tmp_path: Path) -> None:
    from tilewright.runtime.building.file_lock import locked

    with locked(tmp_path / "lock", 1.0) as first, locked(tmp_path / "lock", 0.02) as second:
        assert first and not second
    with locked(tmp_path / "lock", 0.02) as third:
        assert third
    with locked(tmp_path / "missing" / "lock", 0.02) as fourth:
        assert not fourth


def test_tuned_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    x = np.zeros(N, np.float32)
    with autotune_store.recording() as results:
        tuned(increment)[grid](x, N)
        tuned(increment)[grid](x, N + 0)  # measured again: stored results do not count while recording
        tuned(copy, cache_results=False)[grid](x, x.copy(), N)
    assert [result.subject.kernel for result in results] == ["tuned_kernels.py:increment"] * 2 + [
        "tuned_kernels.py:copy"
    ]
    text = autotune_store.tuned_text(results)
    assert text == autotune_store.tuned_text([results[2], results[1]]) and "/" not in text
    path = tmp_path / "tuned.json"
    path.write_text(text.replace(str(results[1].best), str(BLOCKS[0])))
    counted = count_measurements(monkeypatch)
    triton.load_tuned(path)
    kernel = tuned(increment, cache_results=False)
    kernel[grid](x, N)
    assert counted == [] and kernel.best_config == BLOCKS[0]
    changed = json.loads(path.read_text())
    for entry in changed["results"]:
        entry["source"] = "0"
    path.write_text(json.dumps(changed))
    monkeypatch.setenv("TILEWRIGHT_TUNED", str(path))
    monkeypatch.setattr(autotune_store, "_loaded", {})
    with pytest.warns(UserWarning, match="has changed since it was tuned"):
        tuned(increment, cache_results=False)[grid](x, N)
    assert len(counted) == 1
    for content, complaint in (
        ("", "no JSON"),
        ("[]", "no file of tuned"),
        ('{"format": 1, "results": [{}]}', "lacks"),
        (json.dumps({**changed, "results": [{**changed["results"][0], "key": 1}]}), "key of result 0 is no text"),
    ):
        path.write_text(content)
        with pytest.raises(TunedFileError, match=complaint):
            triton.load_tuned(path)
    with pytest.raises(TunedFileError, match="cannot be read"):
        triton.load_tuned(tmp_path / "none.json")
    with pytest.raises(TunedFileError, match="named by a path, not by None"):
        triton.load_tuned(None)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    script, saved = tmp_path / "program.py", tmp_path / "tuned.json"
    script.write_text(PROGRAM + "\nassert sys.argv[1:] == ['--save', 'a']\n")
    command = ["tune", str(script), "--save", str(saved)]
    assert main([*command, "--", "--save", "a"]) == 0
    text = saved.read_text()
    assert "program.py:twice (500, 'float32'): " in capsys.readouterr().out and json.loads(text)["results"]
    assert main([*command, "--", "--save", "a"]) == 1 and "--update" in capsys.readouterr().err
    saved.write_text(text.replace("(500, ", "(501, "))
    assert main([*command, "--update", "--", "--save", "a"]) == 0
    assert [entry["key"][:5] for entry in json.loads(saved.read_text())["results"]] == ["(500,", "(501,"]
    script.write_text("import sys\nsys.exit(3)")
    assert main([*command, "--force"]) == 1 and "ended with 3" in capsys.readouterr().err
    script.write_text("import os\n\n\ndef look():\n    return os.environ['TILEWRIGHT_NO']\n\n\nlook()\n")
    assert main([*command, "--force"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"tilewright: {script} failed: KeyError: 'TILEWRIGHT_NO'\nTraceback")
    assert 'program.py", line 5, in look\n' in error and "cli.py" not in error and "runpy" not in error
    script.write_text("")
    assert main([*command, "--force"]) == 1 and "has tuned nothing" in capsys.readouterr().err
    script.write_text(PROGRAM)
    assert main(["translate", f"{script}:twice", "--signature", "*fp32, i32, 64"]) == 0
    assert "twice(float*" in capsys.readouterr().out


SAME_NAMES = """
import tilewright as triton
import tilewright.language as tl

@triton.autotune([triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], ["n"], cache_results=False)
@triton.jit
def scaled(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * FACTOR, mask=i < n)
"""


def test_kernels_of_one_name_in_files_of_one_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    x, kernels = np.zeros(N, np.float32), []
    for factor in ("2", "3"):
        path = tmp_path / factor / "scales.py"
        path.parent.mkdir()
        path.write_text(SAME_NAMES.replace("FACTOR", factor))
        spec = importlib.util.spec_from_file_location(f"scales_{factor}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        kernels.append(module.scaled)
    with autotune_store.recording() as results:
        for kernel in kernels:
            kernel[grid](x, N)
    configs = [str(config) for config in kernels[0].configs]
    first, second = (
        Result(one.subject, best, {best: [1.0] * 3}, {}) for one, best in zip(results, configs, strict=True)
    )
    text = autotune_store.tuned_text([first, second])
    entries = json.loads(text)["results"]
    assert sorted(entry["best"] for entry in entries) == sorted(configs)
    assert json.loads(autotune_store.tuned_text([first], entries))["results"] == [
        entry for entry in entries if entry["best"] == first.best
    ]  # of a kernel by itself, other texts are what it was before
    one, other = (dataclasses.replace(first, module="a.scales"), dataclasses.replace(second, module="b.scales"))
    before = json.loads(autotune_store.tuned_text([other]))["results"]
    both = json.loads(autotune_store.tuned_text([one], before))["results"]
    assert sorted((entry["module"], entry["best"]) for entry in both) == [
        ("a.scales", configs[0]),
        ("b.scales", configs[1]),
    ]
    changed = dataclasses.replace(one, subject=dataclasses.replace(one.subject, source="another"))
    sources = {entry["source"] for entry in json.loads(autotune_store.tuned_text([changed], both))["results"]}
    assert sources == {
        "another",
        other.subject.source,
    }  # what the first was before is gone, the second is another kernel
    (tmp_path / "tuned.json").write_text(text)
    counted = count_measurements(monkeypatch)
    triton.load_tuned(tmp_path / "tuned.json")
    for kernel, best in zip(kernels, configs, strict=True):
        kernel.cache.clear()
        kernel[grid](x, N)
        assert str(kernel.best_config) == best
    assert counted == []


def test_recordings_within_each_other_end_in_any_order() -> None:
    result = Result(SUBJECT, "a", {"a": [1.0, 1.0, 1.0]}, {})
    with autotune_store.recording() as outer:
        with autotune_store.recording() as inner:
            assert outer == inner  # and yet two
        assert autotune_store.is_recording()
        autotune_store.record(result)
    assert outer == [result]
    assert inner == []
    assert not autotune_store.is_recording()
