"""Numbers of the microscaling formats as tensors of torch, for tests of `tl.dot_scaled`: `MXFP4Tensor`, `MXScaleTensor`.

The formats are those of the OCP's specification 1.0: E2M1 has a sign, two bits of exponent and one of mantissa; E8M0 is a
power of two.
"""

from __future__ import annotations

from typing import Any

from tilewright.diagnostics import ArgumentKindError, MissingPackageError

try:
    import torch
except ImportError as error:
    raise MissingPackageError("triton.tools.mxfp holds tensors of torch: pip install torch") from error

MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # of E2M1, by the three bits below the sign
BIAS = 127  # of E8M0
NO_NUMBER = 255


class _Numbers:
    """Numbers of a format: `data` has the bits of each in a byte."""

    def __init__(self, data: Any = None, size: Any = None, device: Any = None) -> None:
        """Those nearest to `data`; or none yet, for `random` to draw of that size on that device.

        Raises:
          ArgumentKindError: without either, and for data that are no tensor of floats.
        """
        if data is None and size is None:
            raise ArgumentKindError(f"{type(self).__name__} takes data, a tensor of floats, or a size")
        if data is None:
            self.size, self.device = size if isinstance(size, tuple) else (size,), device
            return
        if not isinstance(data, torch.Tensor) or not data.is_floating_point():
            raise ArgumentKindError(
                f"{type(self).__name__}: data must be a tensor of floats, not {type(data).__name__}"
            )
        self.device, self.data = data.device, self._from_float(data)

    def _from_float(self, values: Any) -> Any:
        raise NotImplementedError

    def _draw(self, low: int, high: int) -> Any:
        return torch.randint(low, high, self.size, dtype=torch.uint8, device=self.device)


class MXFP4Tensor(_Numbers):
    """Numbers of 4 bits, E2M1."""

    def random(self) -> MXFP4Tensor:
        """Draws all encodings alike."""
        self.data = self._draw(0, 16)
        return self

    def to(self, dtype: Any) -> Any:
        """The numbers as floats."""
        table = torch.tensor([*MAGNITUDES, *(-one for one in MAGNITUDES)], dtype=dtype, device=self.data.device)
        return table[self.data.long()]

    def _from_float(self, values: Any) -> Any:
        """The nearest, of two the one with an even mantissa; what is larger than all, or no number, is the largest."""
        magnitudes, last = torch.tensor(MAGNITUDES, device=values.device), len(MAGNITUDES) - 1
        middles = (magnitudes[1:] + magnitudes[:-1]) / 2
        size = values.float().abs().nan_to_num(nan=MAGNITUDES[-1])
        found = torch.bucketize(size, middles)  # of what lies in the middle, the lower one
        is_middle = size == middles[found.clamp(max=last - 1)]
        found = torch.where(is_middle & (found % 2 == 1), found + 1, found).clamp(max=last)
        return (found | values.signbit().long() << 3).to(torch.uint8)

    def to_packed_tensor(self, dim: int) -> Any:
        """Two numbers to a byte along a dimension, the first in the low bits; an odd one has 0 beside it.

        Raises:
          ArgumentKindError: for a dimension that there is not.
        """
        data = self.data
        if not 0 <= dim < data.ndim:
            raise ArgumentKindError(f"dim is {dim}; it must be from 0 to {data.ndim - 1}, a dimension of the tensor")
        if data.shape[dim] % 2:
            data = torch.cat((data, torch.zeros_like(data.narrow(dim, 0, 1))), dim)
        low, high = data.unflatten(dim, (-1, 2)).unbind(dim + 1)
        return low | high << 4

    def unpack_packed_tensor(self, packed_tensor: Any, dim: int, original_shape: Any) -> Any:
        """What `to_packed_tensor` made of numbers of that shape: each in a byte again."""
        apart = torch.stack((packed_tensor & 15, packed_tensor >> 4), dim + 1).flatten(dim, dim + 1)
        return apart.narrow(dim, 0, original_shape[dim])


class MXScaleTensor(_Numbers):
    """Scales of 8 bits, E8M0."""

    def random(self, low: float | None = None, high: float | None = None) -> MXScaleTensor:
        """Draws powers of two from the one at or below `low` to the one at or below `high`.

        Raises:
          ArgumentKindError: when there is none between.
        """
        bounds = [None if one is None else int(self._from_float(torch.tensor(float(one)))) for one in (low, high)]
        least, most = bounds[0] or 0, NO_NUMBER - 1 if bounds[1] is None else bounds[1]
        if not least <= most < NO_NUMBER:
            raise ArgumentKindError(f"low is {low} and high {high}; both must be positive, and low not above high")
        self.data = self._draw(least, most + 1)
        return self

    def to(self, dtype: Any) -> Any:
        """The scales as floats."""
        powers = torch.exp2(self.data.double() - BIAS)
        return torch.where(self.data == NO_NUMBER, torch.nan, powers).to(dtype)

    def _from_float(self, values: Any) -> Any:
        """The power of two at or below; what is not positive or not finite is no number."""
        exponent = (torch.frexp(values).exponent - 1 + BIAS).clamp(0, NO_NUMBER - 1)
        is_number = values.isfinite() & (values > 0)
        return torch.where(is_number, exponent, NO_NUMBER).to(torch.uint8)
