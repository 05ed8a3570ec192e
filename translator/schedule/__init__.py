"""Decisions: who holds what, and what the target allows."""
