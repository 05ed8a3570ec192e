"""The checker of dots: its cases agree with the interpreter, and it notices what is wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SAMPLE = (
    "16 16 16|32 32 32 fp32|loop 37x29x45 32x32x32 .* TN$|split k|persistent .* 3 |attention 61|offset=1|wrap=False"
)


def checker(*arguments: str, mode: str = "interpret") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "device_matmul_check.py"), *arguments]
    environment = {**os.environ, "TILEWRIGHT_MODE": mode}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=500, check=False)


def test_the_cases_agree_with_the_interpreter() -> None:
    done = checker("--filter", SAMPLE)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) > 20, done.stdout + done.stderr
    assert all(re.match(r"ok     .*: error \d\.\de[+-]\d\d \(allowed ", line) for line in lines[:-1])
    assert lines[-1].endswith(" cases, 0 bad")


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    import check_cases
    import device_matmul_check

    return check_cases, device_matmul_check


def test_what_is_wrong_is_noticed(parts) -> None:  # type: ignore[no-untyped-def]
    cases, check = parts
    problem = cases.one_dot(16, 16, 32, "fp16", 4)
    values = check.prepared(problem, False)
    good = problem.expected["c_ptr"].astype(np.float32)
    memory = values["c_ptr"].value

    def verdict(content: np.ndarray) -> tuple[bool, str]:
        memory[:] = content.reshape(-1)
        return check.judge(problem, values)

    assert not check.judge(problem, values)[0]  # poisoned
    assert verdict(good)[0]
    for row, col in ((0, 0), (15, 15)):
        wrong = good.copy()
        wrong[row, col] += 0.01
        assert not verdict(wrong)[0] and f"most at [{row}, {col}]" in verdict(wrong)[1]
    assert not verdict(good * (1 + 2**-12))[0] and not verdict(good.T)[0]
    wrong = good.copy()
    wrong[3, 4] = np.nan
    assert verdict(wrong) == (False, "c_ptr: 1 of 256 are not finite, the first at [3, 4]")
    assert verdict(good)[0]
    for zone in (values["c_ptr"].memory[:1], values["c_ptr"].memory[-1:], values["a_ptr"].memory[:1]):
        kept = zone.copy()
        zone[:] = 1
        assert verdict(good) == (False, f"written outside of {'a_ptr' if zone.dtype == np.float16 else 'c_ptr'}")
        zone[:] = kept


def test_layouts_and_alignment_reach_the_kernel(parts) -> None:  # type: ignore[no-untyped-def]
    cases, check = parts
    problem = cases.gemm((5, 7, 9), (16, 16, 16), "fp16", "TN", offset=3)
    values = check.prepared(problem, False)
    a = problem.arguments["a_ptr"]
    assert (problem.arguments["stride_am"], problem.arguments["stride_ak"]) == (1, 5)
    assert (values["a_ptr"].value.reshape(9, 5).T == a).all() and (values["a_ptr"].result() == a).all()
    assert values["a_ptr"].value.ctypes.data % 16 == (values["a_ptr"].memory.ctypes.data + 6) % 16


def test_a_process_that_dies_or_hangs_costs_one_case(tmp_path: Path, capsys: pytest.CaptureFixture[str], parts) -> None:  # type: ignore[no-untyped-def]
    cases, check = parts
    script = tmp_path / "worker.py"
    script.write_text(
        "import sys, time, os\n"
        "for number in range(int(sys.argv[2]), 5):\n"
        "    print(f'{number}|start|', flush=True)\n"
        "    if number == 1: os._exit(9)\n"
        "    if number == 2: time.sleep(60)\n"
        "    print('noise', flush=True)\n"
        '    print(f\'{number}|{"bad" if number == 3 else "ok"}|text\', flush=True)\n'
        "    if number == 3: os._exit(3)\n"
    )
    named = [cases.Case(f"case {number}", lambda: None) for number in range(5)]
    assert check.watch(named, [sys.executable, str(script)], 100, 1.0) == 3
    found = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert found == ["ok      case 0", "FAILED  case 1", "FAILED  case 2", "FAILED  case 3", "ok      case 4"]
