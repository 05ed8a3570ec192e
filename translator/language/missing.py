"""What is said about names that the language does not have, or does not have yet."""

from __future__ import annotations

from collections.abc import Iterable

from ..absent import closest

# Names of Triton that later versions will bring.
NOT_YET = frozenset(
    """associative_scan cumsum cumprod sort topk bitonic_merge histogram gather flip rand rand4x randint randint4x
    randn randn4x philox philox_impl pair_uniform_to_normal uint_to_uniform_float inline_asm_elementwise
    map_elementwise aggregate aggregate_replace slice globaltimer smid
    convert_custom_float8_sm70 convert_custom_float8_sm80""".split()
)


def missing_name(
    module: str, name: str, known: Iterable[str], libdevice: Iterable[str] = (), language: Iterable[str] = ()
) -> AttributeError:
    """The error for `module.name`; `known` are the module's names, `libdevice` those of the device math library.

    `language` are the names of `tl`, where the module lies below it.
    """
    if name in NOT_YET:
        return AttributeError(f"{module}.{name} is not supported yet")
    if name in libdevice:
        return AttributeError(f"{module} has no {name!r}; it is tl.extra.libdevice.{name}")
    if name in language:
        return AttributeError(f"{module} has no {name!r}; it is tl.{name}")
    if "experimental" in name:
        return AttributeError(
            f"{module} has no {name!r}, which Triton has taken out: tensor descriptors are tl.make_tensor_descriptor and, as "
            "arguments, triton.tools.tensor_descriptor.TensorDescriptor"
        )
    meant = closest(name, (one for one in known if not one.startswith("_")))
    hint = f"; did you mean {module}.{meant}?" if meant else ""
    return AttributeError(f"{module} has no {name!r}{hint}")
