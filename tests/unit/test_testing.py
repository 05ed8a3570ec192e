"""`tilewright.testing`: times, comparisons, reports."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright.testing as testing
from tilewright.diagnostics import ToolchainError
from tilewright.runtime import driver
from tilewright.runtime.measuring import report as testing_report
from tilewright.runtime.measuring.clock import HostClock, clock_of, quantile
from tilewright.runtime.tuning import timing
from tilewright.runtime.tuning.timing import Trial, time_in_turns


def test_do_bench_takes_wall_time_without_a_gpu() -> None:
    found = testing.do_bench(lambda: time.sleep(0.004), warmup=1, rep=20, quantiles=(0.5, 0.2, 0.8))
    assert 4 <= found[1] <= found[0] <= found[2] < 40
    assert 4 <= testing.do_bench(lambda: time.sleep(0.004), warmup=1, rep=8, quantiles=[0.5]) < 40
    times = testing.do_bench(lambda: time.sleep(0.001), warmup=1, rep=10, return_mode="all")
    assert 2 <= len(times) <= 10 and min(times) >= 1
    assert testing.do_bench(lambda: time.sleep(0.001), warmup=0, rep=0, return_mode="min") >= 1
    with pytest.raises(ValueError, match="return_mode is 'middle'"):
        testing.do_bench(lambda: pytest.fail("measured"), return_mode="middle")
    for fraction in (-0.5, 1.5, 20, float("nan")):  # percent, for example
        with pytest.raises(ValueError, match=rf"quantiles has {fraction}; it must have fractions"):
            testing.do_bench(lambda: pytest.fail("measured"), quantiles=[0.5, fraction])


def test_gradients_are_dropped_before_every_call() -> None:
    class Leaf:
        grad: Any = 1

    leaf, seen = Leaf(), []

    def step() -> None:
        seen.append(leaf.grad)
        leaf.grad = 1
        time.sleep(0.001)

    testing.do_bench(step, warmup=1, rep=100, grad_to_none=[leaf])
    assert seen.count(None) >= 2 and seen[-1] is None


def test_graphs_need_torch_and_a_gpu() -> None:
    with pytest.raises(ToolchainError, match="needs (torch|a GPU)"):
        testing.do_bench_cudagraph(lambda: None)


def test_quantiles_are_interpolated() -> None:
    values = [4.0, 1.0, 3.0, 2.0]
    for fraction in (0.0, 0.2, 0.5, 0.8, 1.0):
        assert quantile(values, fraction) == pytest.approx(np.quantile(values, fraction))


def test_trials_take_turns_and_hopeless_ones_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "HOST_ROUNDS", 5)
    order: list[str] = []

    class Scripted(HostClock):
        """A clock whose readings are what the launch returns."""

        def start(self, run: Any) -> float:
            return float(run())

    def trial(name: str, value: float) -> Trial:
        return Trial(lambda: order.append(name), lambda: value, lambda: order.append(name.upper()))

    found = time_in_turns({"a": trial("a", 1.0), "b": trial("b", 9.0)}, Scripted(), 0, 0)
    assert found == {"a": [1.0] * 3, "b": [9.0] * 3}
    assert "".join(order) == "aAbB" * 4 + "aA" * 2  # one launch before it counts, three rounds, then the fast one alone


def test_a_launch_that_raises_leaves_no_events(monkeypatch: pytest.MonkeyPatch) -> None:
    events: set[int] = set()

    class Driver:
        """Has events, and nothing else that counts."""

        def cuEventCreate(self, flags: int) -> tuple[int, int]:
            events.add(len(events))
            return 0, len(events) - 1

        def cuEventDestroy(self, event: int) -> tuple[int]:
            events.remove(event)
            return (0,)

        def cuEventElapsedTime(self, before: int, after: int) -> tuple[int, float]:
            return 0, 1.0

        def __getattr__(self, name: str) -> Any:
            return lambda *args: (0, 0) if name in ("cuDeviceGet", "cuDeviceGetAttribute", "cuMemAlloc") else (0,)

    monkeypatch.setattr(driver, "bindings", Driver)
    monkeypatch.setattr(driver, "in_context", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(driver, "current_stream", lambda device: 0)
    trials = {name: Trial(lambda: None, launch, lambda: None) for name, launch in (("a", int), ("b", lambda: 1 // 0))}
    with pytest.raises(ZeroDivisionError), clock_of(0) as clock:
        time_in_turns(trials, clock, 0, 0)
    assert not events
    with clock_of(0) as clock:
        assert time_in_turns({"a": trials["a"]}, clock, 0, 0) == {"a": [1.0] * 3}
        assert len(events) == 2  # which all launches had
    assert not events


def test_assert_close() -> None:
    x = np.linspace(0, 1, 5, dtype=np.float32)
    testing.assert_close(x, x + 0.009)
    testing.assert_close(1.0, 1.005)
    testing.assert_close(np.array([np.nan]), np.array([np.nan]))
    testing.assert_close(x.astype(np.float16), x, atol=1e-3, rtol=lambda dtype: 1e-3 if dtype == np.float16 else 0)
    with pytest.raises(AssertionError, match="(?s)the sum.*Mismatched elements: 1 / 5"):
        testing.assert_close(x, np.array([0, 0.25, 0.5, 0.75, 1.1]), err_msg="the sum")
    with pytest.raises(AssertionError):
        testing.assert_close(np.full(3, np.nan), np.zeros(3))
    with pytest.raises(AssertionError):
        testing.assert_close(x, x + 0.001, atol=0.0, rtol=1e-5)


def test_assert_close_of_torch() -> None:
    torch = pytest.importorskip("torch")
    x = torch.linspace(0, 1, 5, requires_grad=True)
    testing.assert_close(x, x.detach().bfloat16())
    with pytest.raises(AssertionError):
        testing.assert_close(x, x + 1)


def point(size: int, factor: int, provider: str) -> Any:
    value = float(size * factor)
    return (value, value - 1, value + 1) if provider == "ours" else value


BENCH = testing.Benchmark(
    x_names=["size"], x_vals=[1, 2], line_arg="provider", line_vals=["ours", "theirs"], line_names=["Ours", "Theirs"],
    plot_name="speed", ylabel="GB/s", args={"factor": 10}, x_log=True, styles=[("blue", "-"), ("green", "-")],
)  # fmt: skip


def test_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    report = testing.perf_report(BENCH)(point)
    assert report.run(print_data=True) is None
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "speed:" and lines[1].split() == [
        "size",
        "Ours",
        "(GB/s)",
        "Theirs",
        "(GB/s)",
        "Ours-min",
        "Ours-max",
    ]
    assert lines[3].split() == ["2", "20", "20", "19", "21"]
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ToolchainError, match="plots need matplotlib"):
        report.run(save_path=str(tmp_path))
    assert (tmp_path / "speed.csv").read_text().splitlines()[1] == "1,10.0,10.0,9.0,11.0,,"
    with pytest.raises(ToolchainError, match="needs pandas"):
        report.run(return_df=True)
    with pytest.raises(ValueError, match="expected 1 values of x"):
        testing.perf_report(testing.Benchmark(["size"], [(1, 2)], "provider", [], [], "", {}))(point).run()


@pytest.mark.parametrize(
    ("change", "said"),
    [({"line_names": ["Ours"]}, "speed: line_names has 1 labels for 2 line_vals"),
     ({"line_names": ["Ours", "Theirs", "Others"]}, "line_names has 3 labels for 2"),
     ({"styles": [("blue", "-")]}, "speed: styles has 1 styles for 2 line_vals")],
)  # fmt: skip
def test_every_line_has_a_label(change: dict[str, Any], said: str) -> None:
    """Else columns of a table would stand below the labels of others."""
    with pytest.raises(ValueError, match=said):
        dataclasses.replace(BENCH, **change)


def test_plots_draw_every_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []

    class Recorder:
        def __getattr__(self, name: str) -> Any:
            return lambda *args, **kwargs: drawn.append((name, args, kwargs))

        def subplots(self) -> Any:
            return self, self

    recorder = Recorder()
    module = type(sys)("matplotlib")
    module.pyplot = recorder
    monkeypatch.setitem(sys.modules, "matplotlib", module)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", recorder)
    testing_report.perf_report([BENCH])(point).run(save_path=str(tmp_path))
    plots = [(args, kwargs["label"]) for name, args, kwargs in drawn if name == "plot"]
    assert plots == [(([1, 2], [10.0, 20.0]), "Ours"), (([1, 2], [10.0, 20.0]), "Theirs")]
    bands = [args for name, args, _ in drawn if name == "fill_between"]
    assert bands == [([1, 2], [9.0, 19.0], [11.0, 21.0])]
    assert ("savefig", (tmp_path / "speed.png",), {}) in drawn and ("set_xscale", ("log",), {}) in drawn


def test_a_slash_in_a_plots_name_makes_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    report = testing.perf_report(dataclasses.replace(BENCH, plot_name="copies in GB/s"))(point)
    with pytest.raises(ToolchainError, match="plots need matplotlib"):
        report.run(save_path=str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["copies in GB_s.csv"]
    monkeypatch.setattr(testing_report.sys, "platform", "win32")
    bench = dataclasses.replace(BENCH, plot_name='GB/s: "best" of 3?')
    assert testing_report._file("", bench, "csv").name == "GB_s_ _best_ of 3_.csv"
