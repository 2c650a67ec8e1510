"""The figures of lesson 4: those that it shares with the lab, and with chapter 7."""

from pullpush.studies.language_encoder.figures import distance_densities, similarity_matrices, space_plane
from pullpush.studies.term_forces import forces_by_term

__all__ = ["distance_densities", "forces_by_term", "similarity_matrices", "space_plane"]
