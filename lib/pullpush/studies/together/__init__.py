"""Chapter 7: the terms of five papers in one factorial design."""
