"""The parts of `benchmarks/gpu.py`, a file each: a part gives the rows of its table, as far as its time goes."""
