"""Benchmarks over ranges of sizes: tables, CSV files, plots."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.diagnostics import ToolchainError
from tilewright.runtime.tracebacks import outermost


@dataclass
class Benchmark:
    """A plot: which arguments vary along x, which one gives the lines, what stays.

    Attributes:
      x_names, x_vals: the arguments along x and their values; a value is one for all names, or a tuple of one each.
      line_arg, line_vals, line_names: the argument that differs between lines, its values and their labels.
      plot_name: title of the plot, and name of the files.
      args: the other arguments.
      xlabel, ylabel, x_log, y_log, styles: how it is drawn; a style is a colour and a line, as ("blue", "-").
    """

    x_names: list[str]
    x_vals: Sequence[Any]
    line_arg: str
    line_vals: Sequence[Any]
    line_names: list[str]
    plot_name: str
    args: dict[str, Any]
    xlabel: str = ""
    ylabel: str = ""
    x_log: bool = False
    y_log: bool = False
    styles: Sequence[tuple[str, str]] | None = field(default=None)

    def __post_init__(self) -> None:
        """Checks that every line has a label, and a style if there are any.

        Raises:
          ValueError: says how many there are.
        """
        lines = len(self.line_vals)
        if len(self.line_names) != lines:
            raise ValueError(f"{self.plot_name}: line_names has {len(self.line_names)} labels for {lines} line_vals")
        if self.styles and len(self.styles) < lines:
            raise ValueError(f"{self.plot_name}: styles has {len(self.styles)} styles for {lines} line_vals")


class Mark:
    """A measuring function with the benchmarks that it is to run; its result is a number, or (middle, low, high)."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Benchmark | list[Benchmark]) -> None:
        """See `perf_report`."""
        self.fn, self.benchmarks = fn, benchmarks

    @outermost
    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str = "",
        return_df: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Runs all benchmarks.

        Args:
          show_plots: opens a window for each.
          print_data: prints a table of each.
          save_path: folder for a `.csv` and a `.png` of each.
          return_df: returns pandas tables: a list, or one when `benchmarks` is one.
          **kwargs: more arguments for the function.

        Raises:
          ToolchainError: when matplotlib or pandas is needed and missing; tables and CSV files are written before.
        """
        single = isinstance(self.benchmarks, Benchmark)
        benchmarks = [self.benchmarks] if isinstance(self.benchmarks, Benchmark) else self.benchmarks
        tables = []
        for bench in benchmarks:
            header, rows = _measured(self.fn, bench, kwargs)
            if print_data:
                print(f"{bench.plot_name}:\n{_table(header, rows)}")
            if save_path:
                Path(save_path).mkdir(parents=True, exist_ok=True)
                with _file(save_path, bench, "csv").open("w", encoding="utf-8", newline="") as file:
                    csv.writer(file).writerows([header, *rows])
            if bench.plot_name and (show_plots or save_path):
                _plot(bench, rows, show_plots, save_path)
            tables.append(_frame(header, rows) if return_df else None)
        return (tables[0] if single else tables) if return_df else None


def perf_report(benchmarks: Benchmark | list[Benchmark]) -> Callable[[Callable[..., Any]], Mark]:
    """Decorates a function that measures one point, so that `.run()` measures all."""
    return lambda fn: Mark(fn, benchmarks)


def _file(folder: str, bench: Benchmark, kind: str) -> Path:
    """The file of a benchmark, in whose name a slash, as of "GB/s", makes no folder, nor what else Windows has no files of."""
    name = re.sub(r'[<>:"/\\|?*]' if sys.platform == "win32" else "/", "_", bench.plot_name)
    return Path(folder) / f"{name}.{kind}"


def _measured(fn: Callable[..., Any], bench: Benchmark, more: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """(names of the columns, rows): the x values, then per line the middle, and behind all lines low and high of each."""
    rows = []
    for x in bench.x_vals:
        values = list(x) if isinstance(x, (tuple, list)) else [x] * len(bench.x_names)
        if len(values) != len(bench.x_names):
            raise ValueError(f"{bench.plot_name}: expected {len(bench.x_names)} values of x, got {x!r}")
        point = dict(zip(bench.x_names, values, strict=True))
        results = [fn(**point, **{bench.line_arg: line}, **bench.args, **more) for line in bench.line_vals]
        triples = [result if isinstance(result, (tuple, list)) else (result, None, None) for result in results]
        rows.append([*values, *(middle for middle, _, _ in triples), *(v for _, *ends in triples for v in ends)])
    unit = f" ({bench.ylabel})" if bench.ylabel else ""
    ends = [f"{name}-{end}" for name in bench.line_names for end in ("min", "max")]
    return [*bench.x_names, *(name + unit for name in bench.line_names), *ends], rows


def _table(header: list[str], rows: list[list[Any]]) -> str:
    """Columns that hold anything, aligned to the right."""
    kept = [i for i in range(len(header)) if any(row[i] is not None for row in rows)]
    cells = [[header[i] for i in kept]]
    cells += [[f"{row[i]:.6g}" if isinstance(row[i], float) else str(row[i]) for i in kept] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(kept))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def _frame(header: list[str], rows: list[list[Any]]) -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ToolchainError(
            "return_df needs pandas; pip install pandas, or use save_path, which writes CSV"
        ) from error
    return pandas.DataFrame(rows, columns=header)


def _plot(bench: Benchmark, rows: list[list[Any]], show: bool, save_path: str) -> None:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ToolchainError(
            "plots need matplotlib; pip install matplotlib, or run with print_data=True alone"
        ) from error
    figure, axes = plt.subplots()
    try:
        _draw(axes, bench, rows)
        if save_path:
            figure.savefig(_file(save_path, bench, "png"))
        if show:
            plt.show()
    finally:
        plt.close(figure)


def _draw(axes: Any, bench: Benchmark, rows: list[list[Any]]) -> None:
    names, lines = len(bench.x_names), len(bench.line_names)
    x = [row[0] for row in rows]
    for number, label in enumerate(bench.line_names):
        colour, style = bench.styles[number] if bench.styles else (None, None)
        axes.plot(x, [row[names + number] for row in rows], label=label, color=colour, ls=style)
        low = [row[names + lines + 2 * number] for row in rows]
        if None not in low:
            high = [row[names + lines + 2 * number + 1] for row in rows]
            axes.fill_between(x, low, high, alpha=0.15, color=colour)
    axes.legend()
    axes.set_xlabel(bench.xlabel or bench.x_names[0])
    axes.set_ylabel(bench.ylabel)
    axes.set_xscale("log" if bench.x_log else "linear")
    axes.set_yscale("log" if bench.y_log else "linear")
