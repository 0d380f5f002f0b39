"""What the machine code of a kernel says: instructions, occupancy, accesses of a warp, and how two kernels differ."""
