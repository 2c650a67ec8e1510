"""SigLIP for clips with texts in several languages: to KCL what SigLIP is to InfoNCE."""

from __future__ import annotations

from pullpush.losses._siglip import SigLIP
from pullpush.losses.contract import LossCard


class SigLIPLanguages(SigLIP):
    """SigLIP of every language, and their mean; one temperature and one bias for all.

    As KCL with `candidates="language"`, it compares a clip with the texts of one language at a time: a translation is
    no negative. No paper has it; it lets loss and languages vary by themselves. With one language it is SigLIP.

    Args:
        see `SigLIP`.

    Example:
        >>> import torch
        >>> SigLIPLanguages(0.1, -0.5)(torch.eye(3), torch.eye(3)).value.item()  # doctest: +ELLIPSIS
        0.0201...
    """

    languages = "each"


CARD = LossCard(
    name="siglip-languages",
    make=SigLIPLanguages,
    title="SigLIP, each language",
    about="SigLIP of a clip and its text in every language, the mean over languages: KCL with a sigmoid.",
    source="ours; after SigLIP and ATRI Eq. 9",
    citation="siglip",
    sampling="all",
)
