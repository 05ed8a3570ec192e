"""What a tensor is called: by the name of a pointer to it, or of a map of it, without what tells that it is one."""

from __future__ import annotations

ENDINGS = ("_base", "_ptrs", "_ptr", "ptrs", "ptr", "_descriptor", "_desc", "desc")
MAP = "_map"


def tensor_word(name: str) -> str:
    """For `x_ptr`, `x_desc` and `x_desc_base` it is "x"; for a name of which nothing would be left, that name."""
    for ending in ENDINGS:
        stem = name[: -len(ending)].rstrip("_")
        if stem and name.lower().endswith(ending):
            return tensor_word(stem)
    return name


def map_name(word: str) -> str:
    """The name of the map of a tensor that is called so."""
    return f"{word}{MAP}"


def word_of_map(name: str) -> str:
    """The other way round."""
    return name.removesuffix(MAP)
