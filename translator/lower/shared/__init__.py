"""Shared memory: which arrays lie there, and the ways of a tile from one layout to another."""
