"""Chapter 1: forces and drift."""
