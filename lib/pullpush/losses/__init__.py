"""Losses: pure functions on embeddings, and modules that hold their learnable parameters. One file a family."""

from pullpush.losses.infonce import InfoNCE, info_nce
from pullpush.losses.multilingual import CACL, KCL, MLCLAP, cacl, kcl, ml_clap
from pullpush.losses.siglip import SigLIP, siglip
from pullpush.losses.svr import (
    SVR,
    RadiusPredictor,
    SimpleReweight,
    positive_first,
    radius_constraint,
    simple_reweight,
    support_vector,
    svr,
)
from pullpush.losses.temperature import Temperature

__all__ = [
    "CACL",
    "KCL",
    "MLCLAP",
    "SVR",
    "InfoNCE",
    "RadiusPredictor",
    "SigLIP",
    "SimpleReweight",
    "Temperature",
    "cacl",
    "info_nce",
    "kcl",
    "ml_clap",
    "positive_first",
    "radius_constraint",
    "siglip",
    "simple_reweight",
    "support_vector",
    "svr",
]
