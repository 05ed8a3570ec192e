"""What is said about names that the language does not have, or does not have yet."""

from __future__ import annotations

from collections.abc import Iterable

from ..absent import closest, unfound

# Names of Triton that later versions will bring, by what to write until then.
_UNTIL_THEN = {
    "cumsum": "sum up to each element: tl.sum(tl.where(i[:, None] >= i[None, :], x[None, :], 0), axis=1)",
    "associative_scan cumprod": "carry the value through a loop, or scan outside of the kernel",
    "sort topk bitonic_merge": "sort outside of the kernel, or take one tl.max after the other",
    "histogram": "count with tl.atomic_add, at the address of each element's bin",
    "gather": "load the elements from memory, by their indices",
    "flip": "load the elements in the other order, as p + (N - 1 - i)",
    "rand rand4x randint randint4x randn randn4x random philox philox_impl pair_uniform_to_normal "
    "uint_to_uniform_float": "pass the numbers as an array",
    "inline_asm_elementwise": "write it with operators and functions of tl, tl.math and tl.extra.libdevice",
    "map_elementwise": "call the function with the whole tiles, with tl.where in place of its if",
    "aggregate aggregate_replace": "pass a tuple",
    "slice": "write the colons, as x[:, None]",
    "globaltimer": "time launches with triton.testing.do_bench",
    "smid": "number programs by tl.program_id",
    "convert_custom_float8_sm70 convert_custom_float8_sm80": "cast with x.to(dtype), to tl.float8e4nv or tl.float8e5",
}
# Names of NumPy's and torch's, by what to write in a kernel.
_BY_OTHER_MEANS = {
    "mean": "divide the sum, as tl.sum(x, axis) / N",
    "var std": "take the mean of squares, as tl.sum(d * d, axis) / N of the differences d from the mean",
    "prod": "reduce with a function of your own, as tl.reduce(x, axis, combine)",
    "any": "take the maximum, as tl.max(condition.to(tl.int32), axis) > 0",
    "all": "take the minimum, as tl.min(condition.to(tl.int32), axis) > 0",
    "ones ones_like": "write tl.full(shape, 1, dtype)",
    "empty empty_like": "write tl.zeros(shape, dtype)",
    "matmul mm bmm": "write tl.dot(x, y)",
    "transpose swapaxes": "write tl.trans(x), or tl.permute(x, order)",
    "concat concatenate": "write tl.cat(x, y)",
    "stack": "write tl.join(x, y), whose last side is 2",
    "tril triu": "choose by the indices, as tl.where(rows[:, None] >= cols[None, :], x, 0)",
    "relu": "write tl.maximum(x, 0)",
    "silu swish": "write x * tl.sigmoid(x)",
    "square": "write x * x",
    "sign": "compare, as (x > 0).to(tl.int32) - (x < 0).to(tl.int32)",
    "clip": "write tl.clamp(x, low, high)",
}
# Types of Python's and torch's, by those of the language.
TYPES = {"bool": "int1", "int": "int32", "long": "int64", "half": "float16", "float": "float32", "double": "float64"}
BY_OTHER_MEANS = {name: instead for names, instead in _BY_OTHER_MEANS.items() for name in names.split()}
NOT_YET = {name: instead for names, instead in _UNTIL_THEN.items() for name in names.split()}


def missing_name(
    module: str, name: str, known: Iterable[str], libdevice: Iterable[str] = (), language: Iterable[str] = ()
) -> AttributeError | ImportError:
    """The error for `module.name`; `known` are the module's names, `libdevice` those of the device math library.

    `language` are the names of `tl`, where the module lies below it.
    """
    if name in NOT_YET:
        return unfound(f"{module}.{name} is not supported yet; {NOT_YET[name]}")
    if name in libdevice:
        return unfound(f"{module} has no {name!r}; it is tl.extra.libdevice.{name}")
    if name in language:
        return unfound(f"{module} has no {name!r}; it is tl.{name}")
    if module == "tl" and name in TYPES:
        return unfound(f"{module} has no {name!r}; write tl.{TYPES[name]}")
    if module == "tl" and name in BY_OTHER_MEANS:
        return unfound(f"{module} has no {name!r}; {BY_OTHER_MEANS[name]}")
    if "experimental" in name:
        return unfound(
            f"{module} has no {name!r}, which Triton has taken out: tensor descriptors are tl.make_tensor_descriptor and, as "
            "arguments, triton.tools.tensor_descriptor.TensorDescriptor"
        )
    meant = closest(name, (one for one in known if not one.startswith("_")))
    hint = f"; did you mean {module}.{meant}?" if meant else ""
    return unfound(f"{module} has no {name!r}{hint}")
