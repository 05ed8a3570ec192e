"""Reductions: of a thread, a warp, a block."""
