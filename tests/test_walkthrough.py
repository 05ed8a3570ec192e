"""The walkthrough shows what the stages really leave."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_walkthrough_is_true() -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    from build_walkthrough import walkthrough

    written = (ROOT / "docs" / "walkthrough.md").read_text(encoding="utf-8")
    assert written == walkthrough(), "run `python docs/build_walkthrough.py` and read the difference"


def test_the_readme_shows_the_generated_text(tmp_path: Path) -> None:
    """The example of the README, translated, contains the CUDA that the README shows."""
    from tilewright.cli import load_kernel

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    source, shown = (text.split(f"```{language}\n")[1].split("```")[0] for language in ("python", "cuda"))
    path = tmp_path / "scale.py"
    path.write_text(source.split("scale_kernel[")[0])
    kernel = load_kernel(f"{path}:scale_kernel")
    generated = kernel.translate("*fp32:16, *fp32:16, i32, fp32, 1024").source
    assert shown.strip() in generated
