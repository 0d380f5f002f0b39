"""Floor 3: the modes of the command line."""
