"""Losses: pure functions on embeddings, and modules that hold their learnable parameters. One file a method.

One convention: a direction is a mean over its N anchors, and directions are *summed*, as SupCLAP does. What averages
them instead (ML-CLAP, KCL, CACL), or sums over pairs, says so in its docstring, where the line "Scale" says it of all.

>>> import torch
>>> pairs = torch.eye(3)
>>> info_nce(pairs, pairs, tau=0.5), InfoNCE(tau=0.5)(pairs, pairs).value
(tensor(0.4791), tensor(0.4791))
>>> TERMS["svr"].about
'InfoNCE of anchors moved towards their positives by a learnable radius, to be added to a loss.'
"""

from pullpush.catalogue import Catalogue
from pullpush.checks import Direction
from pullpush.losses._additive_margin import AdditiveMargin, additive_margin
from pullpush.losses._cacl import CACL, cacl
from pullpush.losses._clusters import ClusterHeads, clusters
from pullpush.losses._cyclic import CrossCyclic, InModalCyclic, cross_cyclic, in_modal_cyclic
from pullpush.losses._distillation import Distillation, distillation
from pullpush.losses._focal import Focal, focal
from pullpush.losses._info_nce import InfoNCE, info_nce
from pullpush.losses._kcl import KCL, kcl
from pullpush.losses._label_smoothing import LabelSmoothing, epsilon_of_entropy, label_smoothing
from pullpush.losses._ml_clap import MLCLAP, ml_clap
from pullpush.losses._nli import NLI, nli
from pullpush.losses._radius import RadiusPredictor, positive_first, radius_constraint
from pullpush.losses._scaled_push import GradedPush, ScaledPush, scaled_push
from pullpush.losses._siglip import SigLIP, siglip
from pullpush.losses._simcse import SentenceSimCSE, SimCSE, simcse
from pullpush.losses._simple_reweight import SimpleReweight, simple_reweight
from pullpush.losses._sparsity import Sparsity, sparsity
from pullpush.losses._svr import SVR, support_vector, svr
from pullpush.losses._svr_parts import SVRParts, SVRSoftmax, svr_parts, svr_softmax
from pullpush.losses.contract import NEEDS, Loss, LossCard, Output
from pullpush.losses.offer import Offer, apply
from pullpush.losses.temperature import Temperature, Tempered

TERMS: Catalogue[LossCard] = Catalogue("pullpush.losses", LossCard, "loss term")

__all__ = [
    "CACL",
    "KCL",
    "MLCLAP",
    "NEEDS",
    "NLI",
    "SVR",
    "TERMS",
    "AdditiveMargin",
    "ClusterHeads",
    "CrossCyclic",
    "Direction",
    "Distillation",
    "Focal",
    "GradedPush",
    "InModalCyclic",
    "InfoNCE",
    "LabelSmoothing",
    "Loss",
    "LossCard",
    "Offer",
    "Output",
    "RadiusPredictor",
    "SVRParts",
    "SVRSoftmax",
    "ScaledPush",
    "SentenceSimCSE",
    "SigLIP",
    "SimCSE",
    "SimpleReweight",
    "Sparsity",
    "Temperature",
    "Tempered",
    "additive_margin",
    "apply",
    "cacl",
    "clusters",
    "cross_cyclic",
    "distillation",
    "epsilon_of_entropy",
    "focal",
    "in_modal_cyclic",
    "info_nce",
    "kcl",
    "label_smoothing",
    "ml_clap",
    "nli",
    "positive_first",
    "radius_constraint",
    "scaled_push",
    "siglip",
    "simcse",
    "simple_reweight",
    "sparsity",
    "support_vector",
    "svr",
    "svr_parts",
    "svr_softmax",
]
