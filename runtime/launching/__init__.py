"""From arguments to the driver: packing, tensor maps, grids, and the quick way for launches that recur."""
