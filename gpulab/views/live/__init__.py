"""A run as one watches it: panels of fixed height, each a file, and the layout that puts them side by side."""
