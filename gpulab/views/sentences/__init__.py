"""What every finding says in words, by its code, a file a subject."""
