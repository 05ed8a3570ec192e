"""Who holds which element of a tile, which tiles are held at all, and how tiles get from one layout to another."""
