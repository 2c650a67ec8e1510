"""The forces of terms, as the pages of chapter 4 ask for them; see `studies.term_forces`."""

from pullpush.studies.term_forces import drawn, gradient_cosines, term_forces

__all__ = ["drawn", "gradient_cosines", "term_forces"]
