"""Our own kernels on a processor, in C++ and bound by ctypes: products, attention, a whole step."""
