"""The kernel written anew before anything is decided: names, masks, wrap-arounds, the order of loads and products."""
