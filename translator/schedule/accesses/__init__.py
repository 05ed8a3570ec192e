"""How statements touch memory: widths, masks, hints, and how many loads are under way."""
