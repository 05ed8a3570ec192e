"""Functions of public libraries, with arguments of common sizes, for `libraries.py`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

BATCH, LENGTH, HEADS, DIM = 2, 4096, 16, 128
STEPS = 512  # of recurrences, which take them one after the other
ROWS, COLUMNS, VOCABULARY = 8192, 4096, 32000

# What no kernel can do yet is done by torch for both compilers: by the path of the module that it is added to.
MADE_UP = {
    "fla/ops/utils/cumsum.py": """

def _sums(s, scale, reverse, dim):
    s = s.float()
    sums = s.flip(dim).cumsum(dim).flip(dim) if reverse else s.cumsum(dim)
    return sums if scale is None else sums * scale


def chunk_local_cumsum(g, chunk_size, reverse=False, scale=None, output_dtype=torch.float, **_):
    chunks = g.reshape(g.shape[0], -1, chunk_size, *g.shape[2:])
    return _sums(chunks, scale, reverse, 2).reshape(g.shape).to(output_dtype or g.dtype)


def chunk_global_cumsum(s, reverse=False, scale=None, output_dtype=torch.float, **_):
    return _sums(s, scale, reverse, 1).to(output_dtype or s.dtype)


chunk_local_cumsum_scalar = chunk_local_cumsum_vector = chunk_local_cumsum
chunk_global_cumsum_scalar = chunk_global_cumsum_vector = chunk_global_cumsum
""",
}


@dataclass(frozen=True)
class Case:
    """A function of a library.

    Attributes:
      name: the package and a word.
      run: the call, which imports the library.
      arguments: makes the arguments; those that require gradients get them.
    """

    name: str
    run: Callable[..., Any]
    arguments: Callable[[], list[Any]]

    @property
    def package(self) -> str:
        """The folder that the function's module lies in."""
        return {"fla": "fla", "liger": "liger_kernel"}[self.name.split(".")[0]]


def of(module: str, name: str, *rest: Any, **options: Any) -> Callable[..., Any]:
    """A call of a library's function, which is looked up when it is made; `rest` follows the arguments."""

    def call(*arguments: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*arguments, *rest, **options)

    return call


def liger(name: str, *rest: Any) -> Callable[..., Any]:
    """A call of one of Liger's autograd functions."""

    def call(*arguments: Any) -> Any:
        return getattr(importlib.import_module("liger_kernel.ops"), name).apply(*arguments, *rest)

    return call


def normal(*shape: int, dtype: torch.dtype = torch.bfloat16, like: Callable[..., Any] | None = None) -> torch.Tensor:
    """Normal numbers, or what `like` makes of them, that want a gradient."""
    x = torch.randn(*shape, device="cuda")
    return (like(x) if like else x).to(dtype).requires_grad_()


def unit(x: torch.Tensor) -> torch.Tensor:
    """Vectors of length 1."""
    return torch.nn.functional.normalize(x, dim=-1)


def heads(count: int = 3, length: int = LENGTH, dim: int = DIM) -> list[torch.Tensor]:
    """Queries, keys and values."""
    return [normal(BATCH, length, HEADS, dim) for _ in range(count)]


def keys(length: int = LENGTH) -> list[torch.Tensor]:
    """The same, queries and keys of length 1."""
    return [*(normal(BATCH, length, HEADS, DIM, like=unit) for _ in range(2)), normal(BATCH, length, HEADS, DIM)]


def gate(length: int = LENGTH, *dim: int) -> torch.Tensor:
    """Logarithms of decays, for each head or each of its channels."""
    log = torch.nn.functional.logsigmoid
    return normal(BATCH, length, HEADS, *dim, like=log, dtype=torch.bfloat16 if dim else torch.float32)


def share(length: int = LENGTH) -> torch.Tensor:
    """Numbers between 0 and 1 for each head."""
    return normal(BATCH, length, HEADS, like=torch.sigmoid)


def forwards(*arguments: torch.Tensor) -> list[torch.Tensor]:
    """Arguments that want no gradient."""
    return [one.detach() for one in arguments]


def labels(rows: int = ROWS // 4) -> torch.Tensor:
    """A class for each row."""
    return torch.randint(0, VOCABULARY, (rows,), device="cuda")


def logits(like: Callable[..., Any] | None = None) -> torch.Tensor:
    """A row of a vocabulary for each token."""
    return normal(ROWS // 4, VOCABULARY, like=like)


def rows(count: int, *columns: int) -> list[torch.Tensor]:
    """Some matrices, and vectors along their rows."""
    return [*(normal(ROWS, COLUMNS) for _ in range(count)), *(normal(side) for side in columns)]


def log_softmax(x: torch.Tensor) -> torch.Tensor:
    """Logarithms of probabilities."""
    return x.log_softmax(-1)


OPS, MODULES = "fla.ops", "fla.modules."
CASES = (
    Case("fla.attention", of(OPS, "parallel_attn"), heads),
    Case("fla.attention_gated", of(OPS, "parallel_attn"), lambda: [*heads(), gate()]),
    Case("fla.attention_window", of(OPS, "parallel_attn", window_size=512), heads),
    Case("fla.retention", of(OPS, "chunk_retention"), heads),
    Case("fla.linear", of(OPS, "chunk_linear_attn", normalize=False), heads),
    Case("fla.gla", of(OPS, "chunk_gla"), lambda: forwards(*heads(), gate(LENGTH, DIM))),
    Case("fla.delta", of(OPS, "chunk_delta_rule"), lambda: [*keys(), share()]),
    Case("fla.gated_delta", of(OPS, "chunk_gated_delta_rule"), lambda: forwards(*keys(), gate(), share())),
    Case("fla.mesa", of(OPS, "chunk_mesa_net", max_CG_iteration=5, output_final_state=True), lambda: [
        *keys(), gate(), share(), normal(HEADS, DIM, dtype=torch.float32, like=lambda x: x.sigmoid() / 2 + 0.25)]),
    Case("fla.retention_step", of(OPS, "fused_recurrent_retention"), lambda: heads(length=STEPS)),
    Case("fla.delta_step", of(OPS, "fused_recurrent_delta_rule"), lambda: [*keys(STEPS), share(STEPS)]),
    Case("fla.gla_step", of(OPS, "fused_recurrent_gla"), lambda: forwards(*heads(length=STEPS), gate(STEPS, DIM))),
    Case("fla.hgrn_step", of(OPS, "fused_recurrent_hgrn"), lambda: [
        normal(BATCH, LENGTH, 2048), normal(BATCH, LENGTH, 2048, like=torch.nn.functional.logsigmoid)]),
    Case("fla.layer_norm", of(MODULES + "layernorm", "layer_norm"), lambda: rows(1, COLUMNS, COLUMNS)),
    Case("fla.rms_norm_gated", of(MODULES + "fused_norm_gate", "rms_norm_gated", None), lambda: rows(2, COLUMNS)),
    Case("fla.sigmoid_backward", of(MODULES + "activations", "sigmoid_bwd"), lambda: forwards(*rows(2))),
    Case("fla.swiglu", of(MODULES + "activations", "swiglu_fwd"), lambda: forwards(*rows(2))),
    Case("fla.cross_entropy", of(MODULES + "fused_cross_entropy", "cross_entropy_loss", 0.1),
         lambda: [logits(), labels()]),
    Case("liger.rms_norm", liger("LigerRMSNormFunction", 1e-6, 0.0, "llama", False), lambda: rows(1, COLUMNS)),
    Case("liger.layer_norm", liger("LigerLayerNormFunction", 1e-6), lambda: rows(1, COLUMNS, COLUMNS)),
    Case("liger.add_rms_norm", liger("LigerFusedAddRMSNormFunction", 1e-6), lambda: rows(2, COLUMNS)),
    Case("liger.dyt", liger("LigerDyTFunction"), lambda: rows(1, 1, COLUMNS, COLUMNS)),
    Case("liger.gelu_mul", lambda a, b: liger("LigerGELUMulFunction")(a * 1, b * 1), lambda: rows(2)),
    Case("liger.softmax", liger("LigerSoftmaxFunction"), lambda: [logits()]),
    Case("liger.cross_entropy", lambda x, y: liger("LigerCrossEntropyFunction", None, -100, 0.0, 0.1)(x * 1, y),
         lambda: [logits(), labels()]),
    Case("liger.jsd", liger("LigerJSDFunction"), lambda: [logits(log_softmax), logits(log_softmax).detach()]),
    Case("liger.kl", liger("LigerKLDivLossFunction"), lambda: [
        logits(log_softmax), logits(lambda x: x.softmax(-1)).detach()]),
    Case("liger.rope", lambda q, k, *angles: liger("LigerRopeFunction")(q * 1, k * 1, *angles), lambda: [
        normal(BATCH, 32, LENGTH, DIM), normal(BATCH, 8, LENGTH, DIM),
        *forwards(normal(1, LENGTH, DIM), normal(1, LENGTH, DIM))]),
    Case("liger.mhc_post", liger("LigerMHCPostResFunction"), lambda: [
        normal(BATCH, LENGTH, 4, 1024), normal(BATCH, LENGTH, 1024), normal(BATCH, LENGTH, 4, dtype=torch.float32),
        normal(BATCH, LENGTH, 4, 4, dtype=torch.float32)]),
)  # fmt: skip
