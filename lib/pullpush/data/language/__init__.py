"""Captions: words, grammar, wording and entailment of what is in a scene."""
