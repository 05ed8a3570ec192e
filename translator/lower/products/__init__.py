"""Dots: a file for each kind of instruction, their operands, and the wait for what they start."""
