"""A run that is played again from its file, at its own speed or another."""
