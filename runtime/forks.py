"""Forks wait while other threads make a kernel ready: translate it, compile it, import what that and its launch need.

A child has only the thread that forked. Locks that other threads held, those of modules being imported most of all, would
stay taken in it, and its first kernel would wait for ever. Where waiting would take too long, for tuning, there is `ForkLock`.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator

PATIENCE_SECONDS = 30.0  # of a fork; kernels are ready in a fraction of a second
_changed = threading.Condition()
_busy: dict[int, int] = {}  # threads that make kernels ready, and how deeply

# Held while a grid runs on the CPU. It is here, not with the engine, as handlers that a module registers while a fork waits
# for its import would be called behind the fork, but not before it.
ENGINE = threading.RLock()  # which a handler of signals may take while its own thread has it


_LOCKS: weakref.WeakSet[ForkLock] = weakref.WeakSet()


class ForkLock:
    """A lock that a thread can take again, and that a forked child finds free if another thread held it."""

    def __init__(self) -> None:
        """Free."""
        self._lock = threading.RLock()
        _LOCKS.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def renew(self) -> None:
        """Makes it free, in a child, unless the thread that forked holds it."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


@contextlib.contextmanager
def preparing() -> Iterator[None]:
    """Forks of other threads wait until this ends."""
    own = threading.get_ident()
    with _changed:
        _busy[own] = _busy.get(own, 0) + 1
    try:
        yield
    finally:
        with _changed:
            _busy[own] -= 1
            if not _busy[own]:
                del _busy[own]
            _changed.notify_all()


def _before_fork() -> None:
    _changed.acquire()  # held until the fork is done: no thread begins meanwhile
    own = threading.get_ident()
    _changed.wait_for(lambda: not set(_busy) - {own}, PATIENCE_SECONDS)
    ENGINE.acquire()


def _in_parent() -> None:
    ENGINE.release()
    _changed.release()


def _in_child() -> None:
    global _changed, _busy
    ENGINE.release()
    own = threading.get_ident()
    _changed, _busy = threading.Condition(), {own: _busy[own]} if own in _busy else {}
    for lock in _LOCKS:
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
