"""What runs leave for later ones, under the user's cache directory."""
