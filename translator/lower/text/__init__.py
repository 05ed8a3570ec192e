"""Words, numbers and places as CUDA C++ spells them, and the render model that they end in."""
