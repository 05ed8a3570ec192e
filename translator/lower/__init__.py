"""From decisions to the render model: the text as plain values.

`kernel.py` makes the whole of a file, `statements.py` goes through the source in order. The text of `accesses`, `reductions`,
`products` and `staging` lies in packages of their names, as the decisions about them do in `schedule`; `shared` is about
arrays in shared memory, `text` about words, numbers, places and the render model itself.
"""
