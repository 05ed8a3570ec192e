"""The command line: translate, explain, build, cache, demo."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import Any

from .diagnostics import OutputExistsError, TilewrightError
from .pipeline import STAGES
from .version import VERSION


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; 0 when it succeeded, 1 when the user was told why not."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options) or 0)
    except (TilewrightError, KeyError) as error:
        print(f"tilewright: {error.args[0] if isinstance(error, KeyError) else error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("tilewright", description="Tile programs to readable CUDA C++.")
    parser.add_argument("--version", action="version", version=f"tilewright {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    translate = commands.add_parser("translate", help="write a kernel's CUDA")
    _kernel_arguments(translate)
    translate.add_argument("-o", "--output", metavar="OUT.cu", help="write here; print when left out")
    translate.add_argument("--host", action="store_true", help="add a C++ function that launches the kernel")
    translate.add_argument("--force", action="store_true", help="overwrite OUT.cu")
    translate.set_defaults(run=_translate)
    explain = commands.add_parser("explain", help="show what a stage leaves")
    _kernel_arguments(explain)
    explain.add_argument("--after", choices=STAGES, default="kernel")
    explain.set_defaults(run=_explain)
    build = commands.add_parser("build", help="compile a kernel and report registers, shared memory and spills")
    _kernel_arguments(build)
    build.set_defaults(run=_build)
    cache = commands.add_parser("cache", help="what is compiled and kept on disk")
    actions = cache.add_subparsers(required=True, metavar="ACTION")
    actions.add_parser("list", help="the kernels, the one used last first").set_defaults(run=_cache_list)
    show = actions.add_parser("show", help="one kernel's facts and where its text lies")
    show.add_argument("key", help="the beginning of its key, as listed")
    show.set_defaults(run=_cache_show)
    actions.add_parser("clear", help="remove everything").set_defaults(run=_cache_clear)
    demo = commands.add_parser("demo", help="the whole way, on a sample kernel")
    demo.set_defaults(run=_demo)
    return parser


def _kernel_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernel", metavar="FILE.py:KERNEL")
    parser.add_argument("--signature", required=True, help='one entry per parameter, as "*fp32:16, i32, 1024"')
    parser.add_argument("--num-warps", type=int, default=4)
    parser.add_argument("--num-stages", type=int, default=3)
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--no-guards", action="store_true", help="text that is right for all values")


def load_kernel(spec: str) -> Any:
    """The kernel that "FILE.py:NAME" names.

    Raises:
      TilewrightError: when there is no such file or kernel.
    """
    path, _, name = spec.rpartition(":")
    if not path or not Path(path).is_file():
        raise TilewrightError(f"{spec}: expected FILE.py:KERNEL, and {path or spec} is no file")
    module_spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if module_spec is None or module_spec.loader is None:
        raise TilewrightError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(module_spec)
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        module_spec.loader.exec_module(module)
    except TilewrightError:
        raise
    except Exception as error:
        raise TilewrightError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    from .kernel_function import KernelFunction

    kernel = getattr(module, name, None)
    if not isinstance(kernel, KernelFunction):
        found = [key for key, value in vars(module).items() if isinstance(value, KernelFunction)]
        raise TilewrightError(f"{path} has no kernel {name!r}; it has {', '.join(found) or 'none'}")
    return kernel


def _stages(options: Any) -> Any:
    from tilewright.runtime.signature import parse_signature

    from .artifact import Options
    from .pipeline import translate_stages
    from .schedule.targets import find_target

    kernel = load_kernel(options.kernel)
    chosen = Options(num_warps=options.num_warps, num_stages=options.num_stages, guards=not options.no_guards)
    return translate_stages(kernel, parse_signature(kernel, options.signature), chosen, find_target(options.arch))


def _translate(options: Any) -> None:
    output = Path(options.output) if options.output else None
    if output is not None and output.exists() and not options.force:
        raise OutputExistsError(f"{output} exists; pass --force to overwrite it")
    artifact = _stages(options).artifact
    if options.host:
        from .emit.host import with_host_function

        artifact = with_host_function(artifact)
    text = artifact.source
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="ascii", newline="\n")
    except OSError as error:
        raise TilewrightError(f"{output} cannot be written: {error.strerror}") from error


def _explain(options: Any) -> None:
    from .explain import describe_stage

    sys.stdout.write(describe_stage(_stages(options), options.after))


def _build(options: Any) -> None:
    from tilewright.runtime.nvrtc import compile_text

    artifact = _stages(options).artifact
    cubin = compile_text(artifact)
    print(
        f"{artifact.kernel_name} for {artifact.target}: {cubin.registers} registers, "
        f"{artifact.shared_bytes + cubin.static_shared_bytes} bytes of shared memory, {cubin.spill_bytes} bytes of spills"
    )


def _cache_list(options: Any) -> None:
    import time

    from tilewright.runtime import cache

    kernels = cache.listed()
    for one in kernels:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.entry.used))
        key = one.facts["key"]
        print(f"{one.entry.key[:12]}  {used}  {one.entry.size:>9}  {key['target']:<8} {key['kernel']}")
    total = sum(one.entry.size for one in kernels)
    print(f"{len(kernels)} kernels, {total} bytes of at most {cache.bound_bytes()}, in {cache.root()}")


def _cache_show(options: Any) -> None:
    from tilewright.runtime import cache

    kernels = cache.listed(options.key)
    if len(kernels) != 1:
        raise TilewrightError(f"{len(kernels)} kernels have a key that begins with {options.key!r}; see `cache list`")
    (one,) = kernels
    facts = {**one.facts["key"], **{name: value for name, value in one.facts.items() if name not in ("key", "log")}}
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):<20} {value}")
    print(f"{'file':<20} {cache.location(one)}")


def _cache_clear(options: Any) -> None:
    from tilewright.runtime import cache

    files, size = cache.clear()
    print(f"{files} files, {size} bytes removed")


def _demo(options: Any) -> int:
    from tilewright.runtime.demo import demo

    return demo()


if __name__ == "__main__":
    sys.exit(main())
