"""Chapter 6: soft labels and caption clusters (Soft-Label Distillation)."""
