"""Floor 1: mathematics over the values of the protocol. No clocks, no files, no processes."""
