"""The one part of the package that is compiled, where it can be; all else that a build needs is in pyproject.toml."""

import os
import sys
import sysconfig

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel

# Python's stable interface, which builds without the interpreter's lock do not have. There, and where there is no C compiler,
# the package is built without this part; launches then do the same in Python, which takes longer.
HAS_STABLE_INTERFACE = (
    sys.implementation.name == "cpython" and sys.maxsize > 2**32 and not sysconfig.get_config_var("Py_GIL_DISABLED")
)
QUICK_LAUNCH = Extension(
    "tilewright.runtime.quick_launch",
    ["runtime/quick_launch.c", "runtime/quick_call.c"],
    depends=["runtime/quick_launch.h"],
    # Python's own flags ask for what debuggers read, which would be half of the file.
    extra_compile_args=[] if sys.platform == "win32" else ["-g0", "-fvisibility=hidden"],
    # Nor does anyone ask for the names of its functions, or which build it is.
    extra_link_args=["-s", "-Wl,--build-id=none"] if sys.platform == "linux" else [],
    optional=True,
    py_limited_api=True,
)


class Wheel(bdist_wheel):
    """A wheel for this kind of machine and any later Python; one for all machines where nothing could be compiled."""

    def get_tag(self) -> tuple[str, str, str]:
        """The three parts of the tag."""
        compiled = self.get_finalized_command("build_ext").get_outputs()
        is_there = bool(compiled) and all(map(os.path.exists, compiled))
        return super().get_tag() if is_there else ("py3", "none", "any")


setup(
    ext_modules=[QUICK_LAUNCH] if HAS_STABLE_INTERFACE else [],
    options={"bdist_wheel": {"py_limited_api": "cp310"}} if HAS_STABLE_INTERFACE else {},
    cmdclass={"bdist_wheel": Wheel},
)
