"""What is copied ahead of its use: rings of stages, tensor copies, who copies, and the programs of a block."""
