"""Every GPU of a machine, alone and together with the others."""
