"""Which of a kernel's texts the quick way to the driver starts: by guards, by the grid, by how many programs there are.

The functions without `test_` run in processes of their own, with the driver and the torch of `stub.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import stub
from tilewright import diagnostics as errors

from unit.test_fast_path import kernel, way, without_compiler
from unit.test_launching import with_stub

__all__ = ["way"]  # a fixture


def changed(change: Callable[[Any, Any], dict[str, Any]]) -> list[Any]:
    """Translations have other facts from here on, by their options; the list gets every call of the long way."""
    from tilewright import pipeline

    seen = without_compiler()
    original = pipeline.translate

    def translate(function: Any, arguments: Any, options: Any, target: Any) -> Any:
        made = original(function, arguments, options, target)
        return replace(made, **change(made, options))

    pipeline.translate = translate
    return seen


def guarded(**conditions: tuple[str, ...]) -> list[Any]:
    """Translations carry conditions from here on; the list gets every call of the long way."""
    return changed(lambda made, options: conditions if options.guards else {})


def for_many(made: Any, options: Any) -> dict[str, Any]:
    return {"for_many": not options.few_programs}


def guards() -> None:
    """A guard that fails takes the other text, quickly from the second time on."""
    seen = guarded(guards=("n < 10",))
    x = stub.Tensor(0x1000)
    taken = [kernel[(1,)](x, x, n, 6, 1.5, True).metadata.guards for n in (5, 50, 6, 51, 7, 52)]
    assert taken == [True, False] * 3 and len(seen) == 2


def guards_late() -> None:
    """What the guards exclude may come first: then only its text is compiled, and others may keep to them all the same."""
    from tilewright.runtime import cache

    seen = guarded(guards=("n < 10",))
    compiled: list[Any] = []
    machine_code = cache.compiled
    cache.compiled = lambda artifact, target: compiled.append(artifact.guards) or machine_code(artifact, target)
    x = stub.Tensor(0x1000)

    def launch(n: int, **options: Any) -> bool:
        return kernel[(1,)](x, x, n, 6, 1.5, True, **options).metadata.guards

    assert [launch(n) for n in (50, 51)] == [False, False] and compiled == [()] and len(seen) == 1
    assert [launch(n) for n in (5, 52, 6, 53)] == [True, False] * 2
    assert compiled == [(), ("n < 10",)] and len(seen) == 2
    assert not any(launch(n, guards=False) for n in (5, 50, 7)) and len(compiled) == 2  # as it is asked for


def reaches() -> None:
    """So does a grid with which offsets reach too far, the same values or not."""
    seen = guarded(reaches=("num_programs_y * n * 100000000",))
    x = stub.Tensor(0x1000)
    grids = [(1, 1), (1, 5), (3, 1), (3, 5), [1, 1], (1, 1), (1, 1), (1, 5), (1, 5), (1,), lambda meta: (1, 5)]
    taken = [kernel[grid](x, x, 5, 6, 1.5, True).metadata.guards for grid in grids]
    assert taken == [True, False, True, False, True, True, True, False, False, True, False] and len(seen) == 2


def few_programs() -> None:
    """As many programs as multiprocessors, or fewer, take a text of their own where there is one: whoever comes first."""
    seen = changed(for_many)
    x = stub.Tensor(0x1000)
    grids = [(132,), (133,), (2, 66), (2, 67), (1, 1, 1), (1, 1, 1), (1, 1, 1), (133,), (133,), [5, 30], (11, 3, 4)]
    for warps, order in ((4, grids), (8, grids[1:])):
        taken = [kernel[grid](x, x, 5, 6, 1.5, True, num_warps=warps).metadata.few_programs for grid in order]
        assert taken == [math.prod(grid) <= 132 for grid in order]
    assert len(seen) == 4
    assert all(kernel[grid](x, x, 5, 6, 1.5, True, few_programs=True).metadata.few_programs for grid in grids)
    assert len(seen) == 5


def few_programs_and_guards() -> None:
    """All four texts are found again, whatever came first, and those without guards only by what breaks these."""
    seen = changed(lambda made, options: for_many(made, options) | ({"guards": ("n < 10",)} if options.guards else {}))
    x, ways = stub.Tensor(0x1000), [(n, size) for n in (5, 50) for size in (7, 700)]
    for number, first in enumerate(itertools.permutations(ways)):
        before, options = (
            len(seen),
            {"BLOCK": 16 << number % 3, "num_warps": 1 << number // 3 % 5, "maxnreg": 64 + number},
        )
        for n, size in (*first, *ways, *ways):
            found = kernel[(size,)](x, x, n, 6, 1.5, True, **options).metadata
            assert (found.guards, found.few_programs) == (n == 5, size == 7)
        assert len(seen) - before == 4


def warm_ups() -> None:
    """A warm-up, whose grid says little, makes both texts and gives that for many programs."""
    from tilewright.runtime import cache

    changed(for_many)
    compiled: list[Any] = []
    machine_code = cache.compiled
    cache.compiled = lambda artifact, target: compiled.append(artifact.for_many) or machine_code(artifact, target)
    x = stub.Tensor(0x1000)
    assert not kernel.warmup(x, x, 5, 6, 1.5, True, grid=(1,)).metadata.few_programs and len(compiled) == 2
    taken = [kernel[grid](x, x, 5, 6, 1.5, True).metadata.few_programs for grid in ((1,), (200,))]
    assert taken == [True, False] and len(compiled) == 2


def multiples() -> None:
    """Integers that are multiples of what another text is for have that one, whoever comes first; so have those of tuples."""

    def wants(made: Any, options: Any) -> dict[str, Any]:
        wanted = {p: (8, 2)[: (p.divisibility < 8) + (p.divisibility < 2)] for p in made.parameters if p.name == "n"}
        return {"parameters": tuple(replace(p, finer=wanted.get(p, ())) for p in made.parameters)}

    seen = changed(wants)
    x = stub.Tensor(0x1000)
    wanted = {5: 1, 24: 8, 32: 16, 12: 2, -8: 8, 7: 1, 0: 16, -2: 2}
    for number, order in enumerate(itertools.permutations((5, 24, 32, 12))):
        before, options = len(seen), {"BLOCK": 16 << number % 4, "num_warps": 1 << number // 4}
        for n in (*order, *wanted, *wanted):
            found = kernel[(1,)](x, x, n, 6, 1.5, True, **options)
            assert found.specialisation.arguments[2].divisor == wanted[n]
        assert len(seen) - before == 4
    assert len(kernel.device_caches[0][0]) == 24 * 4


def bound_multiples() -> None:
    """What is compiled for multiples, or for any, is launched on what it is for alone: quickly, other texts or not."""
    from tilewright.runtime.compiled import CompiledKernel

    seen, slow = changed(lambda made, options: {"for_many": True}), []
    checked = CompiledKernel.launch_checked
    CompiledKernel.launch_checked = lambda self, *args, grid: slow.append(args[2]) or checked(self, *args, grid=grid)
    x = stub.Tensor(0x1000)
    any_n, eights = (kernel.compile(f"*fp32:16, *fp32:16, {n}, i64, fp32, i1, 16, 0.0") for n in ("i32", "i32:8"))
    for _ in range(3):
        assert any_n[(1,)](x, x, 24, 6, 1.5, True) is any_n and any_n[(1,)](x, x, 5, 6, 1.5, True) is any_n
        assert all(eights[(1,)](x, x, n, 6, 1.5, True) is eights for n in (24, 32, -8))
        try:
            eights[(1,)](x, x, 12, 6, 1.5, True)
        except errors.ArgumentKindError as error:
            assert "another specialisation of kernel" in str(error)
        else:
            raise AssertionError("12 is no multiple of 8")
    assert not seen and slow == [24, 24, 32, 12, 12, 12]


def test_guards_choose_among_prepared_launches(tmp_path: Path, way: str) -> None:
    launches = with_stub(way + "from test_fast_choices import guards as f; f()", tmp_path, (8, 8, 4))
    assert [int.from_bytes(bytes.fromhex(words[8]), "little") for words in launches] == [5, 50, 6, 51, 7, 52]


def test_guards_choose_where_the_first_launch_breaks_them(tmp_path: Path, way: str) -> None:
    launches = with_stub(way + "from test_fast_choices import guards_late as f; f()", tmp_path, (8, 8, 4))
    found = [int.from_bytes(bytes.fromhex(words[8]), "little") for words in launches]
    assert found == [50, 51, 5, 52, 6, 53, 5, 50, 7]


def test_grids_choose_among_prepared_launches(tmp_path: Path, way: str) -> None:
    launches = with_stub(way + "from test_fast_choices import reaches as f; f()", tmp_path, (8, 8, 4))
    assert [int(words[1]) for words in launches] == [1, 5, 1, 5, 1, 1, 1, 5, 5, 1, 5]


def test_few_programs_choose_among_prepared_launches(tmp_path: Path, way: str) -> None:
    launches = with_stub(way + "from test_fast_choices import few_programs as f; f()", tmp_path, (8, 8, 4))
    assert len(launches) == 11 + 10 + 11


def test_guards_and_the_number_of_programs_choose_together(tmp_path: Path, way: str) -> None:
    launches = with_stub(way + "from test_fast_choices import few_programs_and_guards as f; f()", tmp_path, (8, 8, 4))
    assert len(launches) == 24 * 12


def test_warm_ups_are_for_few_programs_and_for_many(tmp_path: Path, way: str) -> None:
    launches = with_stub(way + "from test_fast_choices import warm_ups as f; f()", tmp_path, (8, 8, 4))
    assert [int(words[0]) for words in launches] == [1, 200]


def test_multiples_choose_among_prepared_launches(tmp_path: Path, way: str) -> None:
    launches = with_stub(way + "from test_fast_choices import multiples as f; f()", tmp_path, (8, 8, 4))
    assert len(launches) == 24 * 20


def test_bound_kernels_keep_to_multiples(tmp_path: Path, way: str) -> None:
    launches = with_stub(way + "from test_fast_choices import bound_multiples as f; f()", tmp_path, (8, 8, 4))
    assert len(launches) == 3 * 5
