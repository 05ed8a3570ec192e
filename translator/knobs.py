"""`tilewright.knobs`: settings that programs read and change; see `tilewright.runtime.knobs`."""

from tilewright.runtime.knobs import HookChain, autotuning, cache, compilation, language, refresh_knobs, runtime

__all__ = ["HookChain", "autotuning", "cache", "compilation", "language", "refresh_knobs", "runtime"]
