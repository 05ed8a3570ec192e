"""What is known about a kernel before anything is decided."""
