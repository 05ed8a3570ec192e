"""The version of tilewright, as it stands in generated files and in cache keys, and that of the language.

Programs ask `triton.__version__` which names and options there are. What answers is the version of the language, as Python's
own `sys.version_info` is that of Python in every implementation; tilewright's stands behind the plus sign, where versions
have what is local to a build.
"""

VERSION = "0.1.0"
LANGUAGE_VERSION = f"3.6.0+tilewright{VERSION}"
