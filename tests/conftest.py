"""Shared fixtures: a cache of the test run's own, golden updates, the GPU marker, and running a kernel in every way."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-goldens` rewrites the generated files that are kept in the repository."""
    parser.addoption("--update-goldens", action="store_true", default=False, help="Write the goldens anew.")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker of tests that need a GPU."""
    config.addinivalue_line("markers", "gpu: needs a GPU and torch; skipped elsewhere")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips GPU tests where there is no GPU."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and not _has_gpu():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no GPU"))


def _has_gpu() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


@pytest.fixture(autouse=True)
def own_translations(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every test translates anew: what one makes of a kernel, patched translators included, is not found by others."""
    from tilewright.runtime.building import translations

    folder = tmp_path_factory.mktemp("translations")
    monkeypatch.setattr(translations, "root", lambda: folder)


@pytest.fixture
def run_everywhere(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """Runs a kernel on the CPU and in the interpreter; returns the arrays of the CPU run when both agree.

    `run(kernel, grid, *arguments, tolerance=…, **options)`: every run gets its own copies of the arrays.
    """

    def run(kernel: Any, grid: Any, *arguments: Any, tolerance: float = 0.0, **options: Any) -> list[Any]:
        results = []
        for mode in ("cpu", "interpret"):
            monkeypatch.setenv("TILEWRIGHT_MODE", mode)
            own = [copy.deepcopy(a) for a in arguments]
            kernel[grid](*own, **options)
            results.append([a for a in own if isinstance(a, np.ndarray)])
        for one, other in zip(*results, strict=True):
            left, right = one.astype(np.float64), other.astype(np.float64)
            np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)
        return results[0]

    return run


@pytest.fixture
def run_everyhow(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[list[Any]]]:
    """Runs a kernel on the CPU with threads and asynchronous copies in several orders, and, if `checked`, under sanitizers.

    `run(kernel, grid, arguments, **options)`: the arguments of every run, each with its own copies of the arrays.
    """
    import tilewright.runtime.cpu as cpu

    launch = cpu.run

    def run(kernel: Any, grid: Any, arguments: Sequence[Any], checked: bool = True, **options: Any) -> list[list[Any]]:
        results = []
        ways = [("greedy_low", "late"), ("reverse", "early"), ("random", "mixed"), *([("", "")] if checked else [])]
        for schedule, delivery in ways:
            with monkeypatch.context() as patch:
                patch.setenv("TILEWRIGHT_MODE", "cpu" if schedule else "check")

                def with_way(
                    artifact: Any, grid: Any, values: Any, how: tuple[str, str] = (schedule, delivery)
                ) -> None:
                    launch(artifact, grid, values, schedule=how[0], seed=3, delivery=how[1])

                if schedule:
                    patch.setattr(cpu, "run", with_way)
                results.append([one.copy() if isinstance(one, np.ndarray) else one for one in arguments])
                kernel[grid](*results[-1], **options)
        return results

    return run
