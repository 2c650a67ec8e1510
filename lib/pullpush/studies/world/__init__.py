"""Chapter 0: the world."""
