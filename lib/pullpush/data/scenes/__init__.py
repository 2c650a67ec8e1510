"""Scenes: what sounds when and where, drawn, rendered, mixed, altered; the worlds that they make."""
