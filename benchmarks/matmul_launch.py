"""How `matmul.py` launches its kernels: tuned, with a config that is given, or only compiled, by several processes at once."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

Modules = dict[str, SimpleNamespace]  # kernels and lists of configs, by who reads them
Known = dict[str, dict[str, str]]  # configs by case and contender

SIZES = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "PARTS")
# Milliseconds per config while tuning, for all contenders: those that tilewright takes where nothing is said.
WARMUP, REP = 10, 50


def parsed(config: str) -> dict[str, int]:
    """Keyword arguments for "128,256,64,8,3" or "128,256,64 w8 s3": sizes, warps, stages."""
    *sizes, warps, stages = map(int, re.findall(r"\d+", config))
    return {**dict(zip(SIZES, sizes, strict=False)), "num_warps": warps, "num_stages": stages}


def shown(config: Any) -> str:
    """A config of a tuner as "128,256,64 w8 s3"."""
    return f"{','.join(map(str, config.kwargs.values()))} w{config.num_warps} s{config.num_stages}"


class Launchers:
    """A kernel of both modules; remembers which configs were chosen."""

    def __init__(
        self,
        modules: Modules,
        kernel: str,
        key: list[str],
        configs: str = "configs",
        zeroed: Sequence[str] = (),
        known: Known | None = None,
        config: str | None = None,
    ) -> None:
        """Tunes over what `configs` names, unless `known` has the case or `config` is given.

        The arguments named by `zeroed` start from zeros whenever a config is timed.
        """
        self.kernel, self.known, self.config = kernel, known or {}, config
        self.functions = {name: getattr(module, kernel) for name, module in modules.items()}
        self.configs = {name: getattr(module, configs)() for name, module in modules.items()}
        self.tuners = {
            name: module.triton.autotune(
                self.configs[name], key=key, reset_to_zero=list(zeroed), warmup=WARMUP, rep=REP
            )(self.functions[name])
            for name, module in modules.items()
        }

    def fixed(self, case: tuple[str, str]) -> str | None:
        """The config that a contender of a case (title and contender) need not look for."""
        title, contender = case
        return self.config or self.known.get(title, {}).get(contender)

    def bind(
        self,
        name: str,
        case: tuple[str, str],
        grid: Callable[[dict[str, Any]], tuple[int, ...]],
        *args: Any,
        **meta: Any,
    ) -> Callable[[], Any]:
        """A launch without arguments."""
        config = self.fixed(case)
        if config:
            function, added = self.functions[name], parsed(config)
            return lambda: function[grid](*args, **meta, **added)
        return lambda: self.tuners[name][grid](*args, **meta)

    def config_of(self, name: str, case: tuple[str, str]) -> str:
        """The config of the last launch, as "128,256,64 w8 s3"."""
        if name not in self.functions:
            return ""
        config = self.fixed(case)
        if config:
            *sizes, warps, stages = re.findall(r"\d+", config)
            return f"{','.join(sizes)} w{warps} s{stages}"
        return shown(self.tuners[name].best_config)


class Compilers(Launchers):
    """In place of `Launchers`: what is bound compiles all configs that its launch may need, and launches nothing."""

    def bind(
        self,
        name: str,
        case: tuple[str, str],
        grid: Callable[[dict[str, Any]], tuple[int, ...]],
        *args: Any,
        **meta: Any,
    ) -> Callable[[], Any]:
        """Compiles into the caches on disk; what cannot be compiled shows when it is launched."""
        config = self.fixed(case)
        wanted = [parsed(config)] if config else [each.all_kwargs() for each in self.configs[name]]

        def compile_all() -> None:
            for added in wanted:
                what = self.kernel, name, sorted(meta.items()), sorted(added.items()), [kind(arg) for arg in args]
                if not is_mine(repr(what)):
                    continue
                try:
                    self.functions[name].warmup(*args, grid=(1,), **meta, **added)
                except Exception as error:
                    print(f"{case}, {added}: {type(error).__name__}", flush=True)

        return compile_all


def kind(argument: Any) -> str:
    """What compiled text depends on: an array's type, an integer's divisibility."""
    if hasattr(argument, "dtype"):
        return str(argument.dtype)
    return "1" if argument == 1 else f"divisible: {argument % 16 == 0}"


_SHARE = [0, 1]  # which process this is, of how many
_SEEN: set[str] = set()


def is_mine(what: str) -> bool:
    """Whether this process compiles it: the first time, and if it falls to this process's share."""
    if what in _SEEN:
        return False
    number = len(_SEEN)
    _SEEN.add(what)
    return number % _SHARE[1] == _SHARE[0]


def compile_in_processes(runs: Callable[[], Iterable[Callable[[], Any]]], processes: int) -> None:
    """Calls all that `runs` gives in forked processes, each of which does its share of the configs.

    Nothing may have touched the GPU before: a forked process cannot use what its parent has of CUDA.
    """

    def work(number: int) -> None:
        _SHARE[:] = [number, processes]
        for run in runs():
            run()

    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=work, args=(number,)) for number in range(processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def write_for(arch: str) -> None:
    """Makes both write for an older architecture. What they write is assembled for the GPU that is there."""
    os.environ["TILEWRIGHT_ARCH"] = arch
    os.environ["TRITON_OVERRIDE_ARCH"] = arch.replace("_", "")


def read_known(path: Path | None) -> Known:
    """The configs that an earlier run found, by case and contender."""
    return json.loads(path.read_text()) if path else {}
