"""Training: recipes as data, one loop, diagnostics, evaluation, runs that chapters share."""

from pullpush.extras import need

EXTRA = need("train", "pullpush.training")

from pullpush.training.diagnostics import Diagnostics
from pullpush.training.evaluate import embed, retrieval_rows, retrieval_table, zero_shot
from pullpush.training.frozen import encoded, on_features
from pullpush.training.loop import Result, train
from pullpush.training.recipes import RECIPES, TERMS, Recipe, Term, recipe

__all__ = [
    "RECIPES",
    "TERMS",
    "Diagnostics",
    "Recipe",
    "Result",
    "Term",
    "embed",
    "encoded",
    "on_features",
    "recipe",
    "retrieval_rows",
    "retrieval_table",
    "train",
    "zero_shot",
]
