"""Dots: instructions, operands and their formats, and when products run."""
