"""`@autotune` and `@heuristics`: what is tried, measured, kept and shared."""
