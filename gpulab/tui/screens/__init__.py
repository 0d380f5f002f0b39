"""What fills the terminal, one a file."""
