"""What stands on a screen, one a file."""
