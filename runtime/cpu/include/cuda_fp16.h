// Stands in for CUDA's header of this name: the types are already defined by floats.h.
