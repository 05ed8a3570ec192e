"""Kernels as operators of torch: eager, compiled, exported, differentiated; and what a launch says of tensors without memory."""

from __future__ import annotations

import functools
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.diagnostics import ContiguityError, TracedArrayError
from tilewright.runtime.arguments.arrays import describe
from tilewright.runtime.tracing import without_launches


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


@triton.autotune([triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def tuned_kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


@pytest.mark.parametrize("package", ("torch", "jax"))
def test_without_the_package_the_error_names_it(package: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None\ntry:\n import tilewright.{package}\nexcept ImportError as e: print(e)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"tilewright.{package} needs {package}, which cannot be imported; install it with `pip install tilewright[{package}]`\n"
    )


def test_launches_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    monkeypatch.setattr(tuned_kernel, "cache", {})  # other tests tune it
    x = np.ones(40, np.float32)
    with without_launches():
        scale_kernel[(1,)](x, x, 40, 2.0, BLOCK=64)
        tuned_kernel[(2,)](x, 40)
        assert (x == 1).all() and not tuned_kernel.cache
    scale_kernel[(1,)](x, x, 40, 2.0, BLOCK=64)
    assert (x == 2).all()


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)
    return pytest.importorskip("torch")


def test_a_tensor_without_plain_memory_is_called_so(torch: Any) -> None:
    with pytest.raises(ContiguityError, match="layout torch.sparse_coo has no plain memory"):
        describe(torch.eye(3).to_sparse(), "x_ptr")
    with pytest.raises(TracedArrayError):
        describe(torch.empty(3, device="meta"), "x_ptr")


@pytest.fixture
def scale(torch: Any) -> Any:
    """An operator with a backward pass; its name is its own in this process."""
    import tilewright.torch

    def run(x: torch.Tensor, factor: float) -> torch.Tensor:
        out = torch.empty_like(x)
        scale_kernel[(triton.cdiv(x.numel(), 32),)](x, out, x.numel(), factor, BLOCK=32)
        return out

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.factor = inputs[1]

    def backward(ctx: Any, gradient: Any) -> Any:
        return made(gradient.contiguous(), ctx.factor), None

    run.__annotations__ = {"x": torch.Tensor, "factor": float, "return": torch.Tensor}
    made = tilewright.torch.op(run, name="tilewright_tests::scale", backward=backward, setup_context=setup)
    return made


def test_an_operator_keeps_torch_s_rules(torch: Any, scale: Any) -> None:
    x = torch.randn(37)
    torch.library.opcheck(scale, (x, 2.0))
    torch.library.opcheck(scale, (x.clone().requires_grad_(), 2.0))
    assert torch.equal(scale(x, 2.0), x * 2)
    assert torch.equal(torch.func.vmap(lambda row: scale(row, 2.0))(torch.ones(2, 3)), torch.full((2, 3), 2.0))


def test_an_operator_is_compiled_whole(torch: Any, scale: Any) -> None:
    def program(x: Any) -> Any:
        return scale(x * 2, 3.0) + 1

    compiled = torch.compile(program, fullgraph=True, backend="aot_eager", dynamic=True)
    for size in (5, 70):
        x = torch.randn(size, requires_grad=True)
        result = compiled(x)
        assert torch.allclose(result, x * 6 + 1)
        result.sum().backward()
        assert torch.equal(x.grad, torch.full((size,), 6.0))


def test_an_operator_is_exported(torch: Any, scale: Any) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return scale(x, 3.0)

    program = torch.export.export(Model(), (torch.ones(5),), dynamic_shapes={"x": {0: torch.export.Dim("n")}})
    assert "tilewright_tests.scale" in str(program.graph)
    assert torch.equal(program.module()(torch.ones(9)), torch.full((9,), 3.0))


def test_an_operator_writes_what_it_says(torch: Any) -> None:
    import tilewright.torch

    def add_one(x: torch.Tensor) -> None:
        tuned_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, x.numel())

    add_one.__annotations__ = {"x": torch.Tensor, "return": None}
    op = tilewright.torch.op(add_one, name="tilewright_tests::add_one", mutates_args={"x"})

    def program(x: Any) -> Any:
        y = x * 1
        op(y)
        return y

    x = torch.zeros(50)
    assert torch.equal(torch.compile(program, fullgraph=True, backend="aot_eager")(x), torch.ones(50))


def test_what_cannot_be_an_operator(torch: Any) -> None:
    import tilewright.torch

    with pytest.raises(triton.LaunchError, match="is no function of a module; name the operator"):
        tilewright.torch.op(lambda x: x)
    with pytest.raises(triton.LaunchError, match="Parameter x must have a type annotation"):
        tilewright.torch.op(lambda x: x, name="tilewright_tests::untyped")
    for name in ("noname", "a::b::c", "a::", "a b::c", 3):
        with pytest.raises(triton.LaunchError, match=r'needs a library in front, as in op\(name="mylib::len"\)'):
            tilewright.torch.op(len, name=name)
    with pytest.raises(triton.LaunchError, match="op makes an operator of a function, not of 'noname'"):
        tilewright.torch.op("noname")
    with pytest.raises(triton.LaunchError, match="pass backward as well"):
        tilewright.torch.op(lambda x: x, name="tilewright_tests::half", setup_context=print)


def test_what_has_no_name_or_false_annotations_cannot_be_an_operator_either(torch: Any) -> None:
    """Objects that can be called, such as a `functools.partial`: with a name and a schema they can."""
    import tilewright.torch

    def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
        return x * factor

    twice = functools.partial(scaled, factor=2.0)
    with pytest.raises(
        triton.LaunchError, match=r"an object of type partial is no function of a module; .*mylib::scale"
    ):
        tilewright.torch.op(twice)
    with pytest.raises(triton.LaunchError, match="an object of type partial cannot be an operator of torch: "):
        tilewright.torch.op(twice, name="tilewright_tests::twice")
    with pytest.raises(triton.LaunchError, match="op makes an operator of a function, not of 5"):
        tilewright.torch.op(5, setup_context=print)
    made = tilewright.torch.op(twice, name="tilewright_tests::twice", schema="(Tensor x) -> Tensor")
    assert torch.equal(made(torch.ones(2)), torch.full((2,), 2.0))
    for annotation in ("torch.Tensr", "torch Tensor"):
        scaled.__annotations__["x"] = annotation
        with pytest.raises(triton.LaunchError, match=r"scaled cannot be an operator of torch: .*Tens"):
            tilewright.torch.op(scaled, name="tilewright_tests::scaled")


def test_tensors_without_memory_are_not_launched_on(torch: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    def run(x: Any) -> Any:
        out = torch.empty_like(x)
        scale_kernel[(1,)](x, out, 5, 2.0, BLOCK=32)
        return out

    with FakeTensorMode(), pytest.raises(triton.LaunchError, match="x_ptr is a FakeTensor of torch without memory"):
        run(torch.ones(5))
    with pytest.raises(triton.LaunchError, match=r"decorated with tilewright\.torch\.op"):
        run(torch.ones(5, device="meta"))
    with pytest.raises(triton.LaunchError, match="without memory"):
        torch.func.vmap(run)(torch.ones(2, 5))
    with pytest.raises(triton.LaunchError, match="lazily negated or conjugated"):
        run(torch.ones(5, dtype=torch.complex64).conj().imag)
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"decorated with tilewright\.torch\.op"):
        torch.compile(run, fullgraph=True, backend="eager")(torch.ones(5))
    assert torch.equal(run(torch.ones(5)), torch.full((5,), 2.0))


def test_a_launch_ends_a_graph_and_is_not_looked_into(torch: Any) -> None:
    """Without `fullgraph`; what translates a kernel has thousands of frames that torch.compile would trace."""
    import torch._dynamo

    @triton.jit
    def fresh_kernel(x_ptr, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(x_ptr + i, tl.load(x_ptr + i) + 1)

    def program(x: Any) -> Any:
        y = x * 2
        fresh_kernel[(1,)](y, BLOCK=8)
        return y + 1

    torch._dynamo.utils.counters.clear()
    assert torch.equal(torch.compile(program, backend="eager")(torch.ones(8)), torch.full((8,), 4.0))
    assert 2 <= torch._dynamo.utils.counters["frames"]["total"] < 100
