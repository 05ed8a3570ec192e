"""Copies ahead of their use, by tensor copies or by threads: rings, barriers, boxes, and the roles of warps."""
