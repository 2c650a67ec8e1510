"""HTML that a page shows and a terminal can read."""

from __future__ import annotations

from IPython.display import HTML


class Markup(HTML):
    """HTML with a short text form, for terminals and for diffs of executed notebooks.

    Example:
        >>> Markup("<b>a dog barks</b>", "a dog barks")
        a dog barks
    """

    def __init__(self, data: str, text: str) -> None:
        super().__init__(data)
        self.text = text

    def __repr__(self) -> str:
        return self.text
