"""Chapter 3: multilingual consistency."""
