"""Compiling, caching, launching, and the ways to run."""
