"""Loads, stores and atomics of threads."""
