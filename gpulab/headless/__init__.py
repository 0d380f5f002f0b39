"""The modes of the command line, a file each."""
