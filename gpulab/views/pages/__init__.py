"""What whole pages of the screen show: code, guesses, the history, a comparison of two runs, help."""
