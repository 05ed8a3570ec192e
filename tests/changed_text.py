"""Kernels whose text is changed before it runs: to see that a test notices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import tilewright.runtime.compilations as compilations


def change_text(monkeypatch: pytest.MonkeyPatch, words: str, instead: str) -> None:
    """From here on, texts that are made for launches have others in place of these words, which they must have."""
    translated = compilations.translated

    def changed(*arguments: Any, **named: Any) -> tuple[Any, bool]:
        artifact, is_new = translated(*arguments, **named)
        assert words in artifact.source
        return replace(artifact, source=artifact.source.replace(words, instead)), is_new

    monkeypatch.setattr(compilations, "translated", changed)
