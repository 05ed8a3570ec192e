"""The command line: translate, explain, build, cache, tune, demo."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import inspect
import io
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from .diagnostics import AutotunerError, SignatureError, TilewrightError
from .outputs import check_outputs, write_output
from .pipeline import STAGES
from .version import VERSION


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; 0 when it succeeded, 1 when the user was told why not."""
    given = sys.argv[1:] if arguments is None else arguments
    split = given.index("--") if "--" in given else len(given)  # what follows is a program's own
    options = _parser().parse_args(given[:split])
    options.arguments = given[split + 1 :]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may lack a letter of the user's comments
            stream.reconfigure(errors="backslashreplace")
    try:
        from tilewright.runtime.environment import check_settings

        check_settings()
        done = int(options.run(options) or 0)
        sys.stdout.flush()
        return done
    except BrokenPipeError:  # who reads has seen enough, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python still has to write
        return 1
    except TilewrightError as error:
        print(f"tilewright: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if error.errno is None:  # none of the system's
            raise
        if error.filename is None:  # what was written went to the standard output
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        place = "the standard output cannot be written" if error.filename is None else error.filename
        print(f"tilewright: {place}: {error.strerror}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "tilewright", description="Tile programs to readable CUDA C++.",
        epilog='for example:\n  tilewright translate FILE.py:KERNEL --signature "*fp32:16, i32, 1024"',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"tilewright {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    translate = commands.add_parser("translate", help="write a kernel's CUDA")
    _kernel_arguments(translate)
    translate.add_argument("-o", "--output", metavar="OUT.cu", help="write here; print when left out or -")
    translate.add_argument("--host", action="store_true", help="add a C++ function that launches the kernel")
    translate.add_argument("--header", metavar="OUT.h", help="write the declaration of that function here")
    translate.add_argument("--force", action="store_true", help="overwrite OUT.cu")
    translate.set_defaults(run=_translate)
    explain = commands.add_parser("explain", help="show what a stage leaves")
    _kernel_arguments(explain)
    explain.add_argument(
        "--after", choices=STAGES, default="kernel", help="the stage (kernel: what the frontend built)"
    )
    explain.set_defaults(run=_explain)
    build = commands.add_parser("build", help="compile a kernel and report registers, shared memory and spills")
    _kernel_arguments(build)
    build.set_defaults(run=_build)
    cache = commands.add_parser("cache", help="what is compiled and kept on disk")
    actions = cache.add_subparsers(required=True, metavar="ACTION")
    actions.add_parser("list", help="the kernels, the one used last first").set_defaults(run=_cache_list)
    show = actions.add_parser("show", help="one kernel's facts and where its text lies")
    show.add_argument("key", metavar="KEY", help="the beginning of its key, as listed")
    show.set_defaults(run=_cache_show)
    actions.add_parser("clear", help="remove everything").set_defaults(run=_cache_clear)
    tune = commands.add_parser("tune", help="run FILE.py [-- ARG ...] and keep what its tunings find")
    tune.add_argument("file", metavar="FILE.py", help="a program; what stands behind -- are its arguments")
    tune.add_argument("--save", required=True, metavar="TUNED.json", help="write the configs here; see load_tuned")
    present = tune.add_mutually_exclusive_group()
    present.add_argument("--force", action="store_true", help="overwrite TUNED.json")
    present.add_argument("--update", action="store_true", help="keep other kernels, devices and keys of TUNED.json")
    tune.set_defaults(run=_tune)
    demo = commands.add_parser("demo", help="the whole way, on a sample kernel")
    demo.set_defaults(run=_demo)
    return parser


def _kernel_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kernel", metavar="FILE.py:KERNEL", help="a function under @triton.jit in a file, in a class: CLASS.KERNEL"
    )
    parser.add_argument("--signature", help='one entry per parameter, as "*fp32:16, i32, 1024" (needed)')
    parser.add_argument("--num-warps", type=int, default=4, metavar="N", help="warps of a block, a power of 2 (4)")
    parser.add_argument("--num-stages", type=int, default=3, metavar="N", help="stages of loops that load ahead (3)")
    parser.add_argument("--maxnreg", type=int, metavar="N", help="registers a thread may have")
    parser.add_argument("--no-fp-fusion", action="store_true", help="products and sums are rounded each by itself")
    parser.add_argument("--debug", action="store_true", help="keep tl.device_assert")
    parser.add_argument("--arch", default="sm_90a", help="write for this architecture: sm_80, sm_90a, ... (sm_90a)")
    parser.add_argument("--no-guards", action="store_true", help="text that is right for all values")
    parser.add_argument(
        "--few-programs",
        action="store_true",
        help="for grids no larger than the GPU has multiprocessors: load further ahead",
    )
    parser.add_argument("--name", default="", help="call the kernel so; two in one program need two names")
    parser.add_argument("--launch-cooperative-grid", action="store_true", help="all programs run at once")
    parser.add_argument("--launch-pdl", action="store_true", help="may start before the grid in front of it has ended")


def load_kernel(spec: str) -> Any:
    """The kernel that "FILE.py:NAME" names, or "FILE.py:CLASS.NAME".

    Raises:
      TilewrightError: when there is no such file or kernel.
    """
    path, _, name = (spec, "", "") if spec.endswith(".py") else spec.rpartition(":")
    if not path:
        raise TilewrightError(f"{spec}: expected FILE.py:KERNEL")
    if not Path(path).is_file():
        raise TilewrightError(f"{spec}: expected FILE.py:KERNEL, and {path} is no file")
    try:
        module = _imported(Path(path).resolve())
    except TilewrightError:
        raise
    except SystemExit as error:
        raise TilewrightError(f"{path} cannot be imported: it ended with {error.code}") from error
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        raise TilewrightError(f"{path} cannot be imported: {cause}\n{_traceback(error)}") from error
    from .kernel_function import KernelFunction

    found = module
    for part in name.split("."):  # of a class: "Class.kernel"
        found = getattr(found, part, None)
    kernel = innermost(found)
    if not isinstance(kernel, KernelFunction):
        known = _kernels(module, "")
        if not name and known:
            raise TilewrightError(f"{path}: expected FILE.py:KERNEL, as {path}:{known[0]}; it has {', '.join(known)}")
        raise TilewrightError(f"{path} has no kernel {name!r}; it has {', '.join(known) or 'none'}")
    return kernel


def _kernels(owner: Any, prefix: str) -> list[str]:
    """The names of a module's or class's kernels; of classes that are defined in it, as "Class.kernel"."""
    from .kernel_function import KernelFunction

    names = []
    home = getattr(owner, "__module__", None) or owner.__name__
    for name, value in vars(owner).items():
        if isinstance(innermost(value.__func__ if isinstance(value, staticmethod) else value), KernelFunction):
            names.append(prefix + name)
        elif isinstance(value, type) and (value.__module__, value.__qualname__) == (home, prefix + name):
            names += _kernels(value, f"{prefix}{name}.")
    return names


def _traceback(error: BaseException) -> str:
    """Python's report of an error in a file of the user's, without lines of ours."""
    from tilewright.runtime.tracebacks import shortened

    return "".join(traceback.format_exception(shortened(error))).rstrip()


def _imported(path: Path) -> Any:
    """The module of a file: by itself, or as part of its package where it asks for the package's other modules."""
    name = path.stem if path.stem not in sys.modules else f"_{path.stem}"  # such as copy.py
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TilewrightError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    sys.modules[name] = module  # where dataclasses look for what their annotations mean
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        sys.modules.pop(name, None)
        if "no known parent package" in str(error) and (path.parent / "__init__.py").is_file():
            return _imported_from_package(path)
        raise
    finally:
        sys.path.pop(0)
    return module


def _imported_from_package(path: Path) -> Any:
    """The module of a file under the name that its folders give it."""
    folder, names = path.parent, [path.stem]
    while (folder / "__init__.py").is_file():
        folder, names = folder.parent, [folder.name, *names]
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(".".join(names))
    finally:
        sys.path.pop(0)


def innermost(value: Any) -> Any:
    """The kernel beneath decorators such as `autotune`; anything else is itself."""
    from .kernel_function import KernelFunction

    # Without asking the object, for there are some that have every attribute, such as those of unittest.mock.
    while not isinstance(value, KernelFunction) and inspect.getattr_static(value, "fn", None) is not None:
        value = value.fn
    return value


def _stages(options: Any) -> Any:
    """What the stages leave. What the user's file prints meanwhile is no part of what a command writes to standard output."""
    with contextlib.redirect_stdout(sys.stderr):
        return _translated(options)


def _translated(options: Any) -> Any:
    from tilewright.runtime.arguments.signature import example_signature, parse_signature
    from tilewright.runtime.options import make_options

    from .pipeline import translate_stages
    from .schedule.targets import find_target

    kernel = load_kernel(options.kernel)
    words = ("num_warps", "num_stages", "maxnreg", "few_programs", "launch_cooperative_grid", "launch_pdl")
    given = {word: getattr(options, word) for word in words} | {"guards": not options.no_guards}
    given |= {"enable_fp_fusion": False} if options.no_fp_fusion else {}
    chosen = make_options(given, options.debug or bool(kernel.debug))
    if options.signature is None:
        raise SignatureError(
            f"--signature is missing: {kernel.__name__} takes {', '.join(kernel.arg_names) or 'nothing'}; for example\n"
            f'    --signature "{example_signature(kernel)}"'
        )
    arguments, target = parse_signature(kernel, options.signature), find_target(options.arch)
    return translate_stages(kernel, arguments, chosen, target, options.name)


def _translate(options: Any) -> None:
    from .emit.host import host_header, with_host_function

    if options.header and not options.host:
        raise TilewrightError("--header declares the function that --host adds; pass --host too")
    output = None if options.output == "-" else options.output
    outputs = [Path(name) for name in (output, options.header) if name]
    program = Path(options.kernel.rpartition(":")[0])
    check_outputs(outputs, options.force, "pass --force to overwrite it", program)
    artifact = _stages(options).artifact
    text = with_host_function(artifact).source if options.host else artifact.source
    if options.header:
        write_output(Path(options.header), host_header(artifact))
    if output:
        write_output(Path(output), text)
    else:
        sys.stdout.write(text)


def _explain(options: Any) -> None:
    from .explain import describe_stage

    sys.stdout.write(describe_stage(_stages(options), options.after))


def _build(options: Any) -> None:
    from tilewright.runtime.building.nvrtc import compile_text

    artifact = _stages(options).artifact
    cubin = compile_text(artifact)
    print(
        f"{artifact.kernel_name} for {artifact.target}: {cubin.registers} registers, "
        f"{artifact.shared_bytes + cubin.static_shared_bytes} bytes of shared memory, {cubin.spill_bytes} bytes of spills"
    )


def _cache_list(options: Any) -> None:
    import time

    from tilewright.runtime import cache
    from tilewright.runtime.building import folders

    kernels = cache.listed()
    for one in kernels:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.entry.used))
        key = one.facts["key"]
        print(f"{one.entry.key[:12]}  {used}  {one.entry.size:>9}  {key['target']:<8} {key['kernel']}")
    total = sum(one.entry.size for one in kernels)
    print(f"{_counted(len(kernels), 'kernel')}, {total} bytes of at most {folders.bound_bytes()}, in {cache.root()}")
    for what, files, size in cache.others():
        print(f"{_counted(files, 'file')}, {size} bytes: {what}")
    if wanted := folders.replaced_folder():
        print(f"{wanted} cannot be used as a cache; all this lies in {folders.cache_folder()}, which is used instead")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


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
    from tilewright.runtime.building import folders

    used = folders.cache_folder()
    if wanted := folders.replaced_folder():
        raise TilewrightError(
            f"{wanted} cannot be used as a cache; {used}, which is used instead, is not emptied unless it is named: set "
            f"TILEWRIGHT_CACHE_DIR={used}"
        )
    files, size = cache.clear()
    print(f"{_counted(files, 'file')}, {size} bytes removed from {used}")


def _tune(options: Any) -> None:
    from tilewright.runtime.tuning.store import read_tuned, recording, tuned_text

    output = Path(options.save)
    remedy = "pass --force to overwrite it, or --update to add to it"
    check_outputs([output], options.force or options.update, remedy, Path(options.file))
    others = read_tuned(output) if options.update and output.exists() else []
    with recording() as results:
        _run_program(options.file, options.arguments)
    if not results:
        raise AutotunerError(
            f"{options.file} has tuned nothing: no kernel with several configs was launched, or not on a GPU or the CPU"
        )
    write_output(output, tuned_text(results, others))
    for result in results:
        best = result.milliseconds[result.best][0]
        print(f"{result.subject.kernel} {result.subject.key}: {best:.4g} ms with {result.best}")


def _run_program(path: str, arguments: list[str]) -> None:
    """Runs a file as `python FILE ARG...` does.

    Raises:
      TilewrightError: when there is no such file, or the program fails.
    """
    import runpy

    if not Path(path).is_file():
        raise TilewrightError(f"{path} is no file")
    own, sys.argv = sys.argv, [path, *arguments]
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as error:
        if error.code not in (None, 0):
            raise TilewrightError(f"{path} ended with {error.code}") from error
    except TilewrightError:
        raise
    except Exception as error:
        raise TilewrightError(f"{path} failed: {type(error).__name__}: {error}\n{_traceback(error)}") from error
    finally:
        sys.argv = own
        sys.path.pop(0)


def _demo(options: Any) -> int:
    from tilewright.runtime.demo import demo

    return demo()


if __name__ == "__main__":
    sys.exit(main())
