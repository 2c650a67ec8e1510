"""Chapter 2: Support Vector Regularization."""
