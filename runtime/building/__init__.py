"""From text to machine code, and what is kept of it on disk."""
