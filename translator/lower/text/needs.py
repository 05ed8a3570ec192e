"""What the file must hold beside the kernel's body: helpers, structs, and the packets of vector accesses."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import chain
from pathlib import PurePath

from ...ir.c_names import is_library_name
from ...ir.nodes import CallFunction, DeviceFunction
from ...ir.static_loops import StaticLoop
from ...language.dtypes import DTYPES
from .names import Names, spare_names
from .unit import Helper


@dataclass
class Used:
    """What expressions were spelled with, in the order in which it was first met. A kernel and its functions share one."""

    ops: dict[str, None] = field(default_factory=dict)
    helpers: dict[str, None] = field(default_factory=dict)
    functions: dict[DeviceFunction, CallFunction] = field(default_factory=dict)


@dataclass
class Needs:
    """See the module docstring. The kernel and its device functions share one."""

    names: Names  # those of the file
    used: Used = field(default_factory=Used)
    helpers: dict[str, Helper] = field(default_factory=dict)
    structs: dict[tuple[object, ...], str] = field(default_factory=dict)  # names, by what each is made for
    packets: set[int] = field(default_factory=set)  # sizes of vector accesses, in bytes
    functions: dict[DeviceFunction, str] = field(default_factory=dict)  # their names
    unequal: set[StaticLoop] = field(default_factory=set)  # that cannot be written as loops, since their trips differ

    def helper(self, template: str, name: str, values: dict[str, object]) -> str:
        """Asks for a helper and returns its name; a name stands for one text."""
        known = self.helpers.setdefault(name, Helper(template, name, values))
        if known.template != template or known.values != values:
            raise ValueError(f"two helpers would be called {name}")
        return name

    def function_name(self, function: DeviceFunction, kernel: str) -> str:
        """The name of a device function: the user's, unless something of ours or CUDA's has it; then with where it is from."""
        if function not in self.functions:
            own = [] if is_library_name(function.name) else [function.name]
            where = re.sub(r"\W", "_", PurePath(function.origin.file).stem) or kernel
            self.functions[function] = self.names.fresh(*own, f"{function.name}_of_{where}")
        return self.functions[function]

    def overload(self, name: str, ctype: str, values: dict[str, object], template: str = "", takes: str = "") -> str:
        """Asks for a helper of which there is one for each type of elements, all of the same name; returns the name.

        `takes` tells apart those for one type that take something else.
        """
        self.helper(template or name, f"{name} {ctype} {takes}".rstrip(), {**values, "name": name, "ctype": ctype})
        return name

    def distinct_helper(self, template: str, name: str, values: dict[str, object], difference: str = "") -> str:
        """A helper whose name is its own where another has other values; `difference` is a word for what differs."""
        words = filter(None, (difference, values.get("a_type") or values.get("acc")))
        candidates = chain((name,), (f"{name}_{word}" for word in words), spare_names(name))
        known = self.helpers
        free = (one for one in candidates if one not in known or known[one].values == values)
        return self.helper(template, next(free), values)

    def size_of(self, state: str) -> int:
        """Bytes of a C++ type: of an element, or of a state struct (every field takes at most 8)."""
        sizes = {dtype.cuda: dtype.itemsize for dtype in DTYPES}
        if state in sizes:
            return sizes[state]
        fields = self.helpers[state].values["fields"]
        total = 0
        for field_type, _ in fields:
            size = sizes[field_type]
            total = -(-total // size) * size + size
        widest = max(sizes[field_type] for field_type, _ in fields)
        return -(-total // widest) * widest
