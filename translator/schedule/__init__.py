"""Decisions: who holds what, what runs when, and what the target allows.

`rewrites` write the kernel anew before anything is decided. `tiles` says who holds which element, `accesses` how memory is
touched, `products` how dots are multiplied, `staging` what is copied ahead of its use and by whom. `decide.py` asks them in
their order; `named_blocks.py` says for how many blocks registers must suffice, `more_blocks.py` whether arrays take turns for
further ones. `plan.py` holds what was decided, as plain values that the text is written from; `targets.py` has a row for every
architecture.
"""
