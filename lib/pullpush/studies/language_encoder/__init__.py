"""Chapter 4: the language encoder."""
