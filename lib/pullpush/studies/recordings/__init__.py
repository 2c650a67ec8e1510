"""Chapter 8: what was learnt from the book's scenes, tested on recordings that others made."""
