"""From decisions to the render model: the text as plain values."""
