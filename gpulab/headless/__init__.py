"""Floor 5: the modes of the command line, a file each."""
