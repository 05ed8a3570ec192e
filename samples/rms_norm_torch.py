"""RMS norm as an operator of torch, forward and backward: under torch.compile and in autograd, on the CPU or a GPU."""

import tilewright as triton
import tilewright.language as tl
import tilewright.torch
import torch

EPS, GROUPS = 1e-6, 16


@triton.jit
def rms_norm_fwd(x_ptr, w_ptr, y_ptr, rstd_ptr, N, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(rstd_ptr + row, rstd)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * N + cols, x * rstd * w, mask=mask)


@triton.jit
def rms_norm_bwd(dx_ptr, dw_ptr, dy_ptr, x_ptr, w_ptr, rstd_ptr, M, N, BLOCK_SIZE: tl.constexpr):
    group = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < N
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    # A program keeps its rows' part of the weight's gradient in registers and writes it once.
    dw = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    for row in range(group, M, tl.num_programs(0)):
        x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        xhat, wdy = x * rstd, w * dy
        dx = (wdy - xhat * (tl.sum(xhat * wdy, axis=0) / N)) * rstd
        tl.store(dx_ptr + row * N + cols, dx, mask=mask)
        dw += dy * xhat
    tl.store(dw_ptr + group * N + cols, dw, mask=mask)


def block_of(columns: int) -> int:
    """The block that a row fits in; a function of its own because it needs a number, not a traced size."""
    return triton.next_power_of_2(int(columns))


def launch_forward(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What becomes of x, and rstd for the backward pass: one program a row."""
    rows, cols = x.shape
    y, rstd = torch.empty_like(x), torch.empty(rows, device=x.device)
    rms_norm_fwd[(rows,)](x, w, y, rstd, cols, EPS, BLOCK_SIZE=block_of(cols))
    return y, rstd


def launch_backward(
    dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, rstd: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of x and w; each program leaves a part of the latter."""
    rows, cols = x.shape
    dx, parts = torch.empty_like(x), torch.empty(GROUPS, cols, device=x.device)
    rms_norm_bwd[(GROUPS,)](dx, parts, dy.contiguous(), x, w, rstd, rows, cols, BLOCK_SIZE=block_of(cols))
    return dx, parts.sum(0).to(w.dtype)


def keep(ctx, inputs, output) -> None:
    """Keeps what the backward pass reads."""
    ctx.save_for_backward(*inputs, output[1])


def backward(ctx, dy, _):
    """The gradients of x and w; the second result, rstd, has none."""
    return rms_norm_backward(dy, *ctx.saved_tensors)


rms_norm_backward = tilewright.torch.op(launch_backward, name="samples::rms_norm_backward")
rms_norm = tilewright.torch.op(launch_forward, name="samples::rms_norm", backward=backward, setup_context=keep)


class RMSNorm(torch.autograd.Function):
    """The same launches the older way, for programs that are not compiled."""

    @staticmethod
    def forward(ctx, x, w):
        """Launches the first kernel."""
        y, rstd = launch_forward(x, w)
        ctx.save_for_backward(x, w, rstd)
        return y

    @staticmethod
    def backward(ctx, dy):
        """Launches the second one."""
        return launch_backward(dy, *ctx.saved_tensors)


def main() -> None:
    """Results and gradients of the operator, of the compiled operator and of the autograd function, against torch."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, dy = torch.randn(2, 33, 781, device=device)
    w = torch.randn(781, device=device)
    exact = [t.double().requires_grad_() for t in (x, w)]
    expected = exact[0] * torch.rsqrt((exact[0] ** 2).mean(1, keepdim=True) + EPS) * exact[1]
    expected.backward(dy.double())
    ways = {
        "op": lambda x, w: rms_norm(x, w)[0],
        "compiled op": torch.compile(lambda x, w: rms_norm(x, w)[0], fullgraph=True, backend="aot_eager"),
        "autograd.Function": RMSNorm.apply,
    }
    for name, way in ways.items():
        own = [t.clone().requires_grad_() for t in (x, w)]
        y = way(*own)
        y.backward(dy)
        pairs = [(y, expected), *((a.grad, b.grad) for a, b in zip(own, exact, strict=True))]
        error = max(float(((a - b).detach().abs() / b.abs().clamp(min=1)).max()) for a, b in pairs)
        print(f"rms_norm_torch, {name}: largest error {error:.1e} (allowed 1e-05)")
        if not error <= 1e-5:
            raise SystemExit(f"{name} is wrong")


if __name__ == "__main__":
    main()
