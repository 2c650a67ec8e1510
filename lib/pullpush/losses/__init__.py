"""Losses: pure functions on embeddings, and modules that hold their learnable parameters. One file a family."""

from pullpush.losses.infonce import InfoNCE, info_nce
from pullpush.losses.siglip import SigLIP, siglip

__all__ = ["InfoNCE", "SigLIP", "info_nce", "siglip"]
