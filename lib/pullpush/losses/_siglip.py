"""The pairwise sigmoid loss (SigLIP; GLAP Eq. 1–2)."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.checks import check_choice, check_number, check_temperature
from pullpush.losses._tiles import Rule, Tile, fits, inverse, take_positives, tiled
from pullpush.losses.contract import LossCard, Output
from pullpush.losses.temperature import Tempered
from pullpush.precision import EXACT, checked

Form = Literal["glap", "siglip"]


def siglip(
    audio: Tensor,
    text: Tensor,
    tau: float | Tensor = 0.1,
    bias: float | Tensor | None = None,
    form: Form = "glap",
) -> Tensor:
    """Sigmoid loss: every pair of the N × N is a binary decision; summed over pairs and divided by N.

    Two readings of the bias: `form="glap"` is GLAP's printed Eq. 2, (s + bias)/τ; `form="siglip"` is s/τ + bias,
    as in SigLIP and in GLAP's published code. They are the same family: bias_siglip = bias_glap/τ. With the
    printed initial values τ = 0.07 and bias = −10 the first form starts at logits near −143.

    Up to N = 4,096 all logits are held, and the loss is differentiable twice. Above, they are made, used and dropped
    in tiles: beyond the embeddings and their gradients it takes 128 MiB in float32, whatever N is, and is
    differentiable once.

    Scale: a sum over N² pairs, divided by N; a pair serves both directions at once.

    Args:
        audio: `(N, d)` L2-normalised audio embeddings.
        text: `(N, d)` L2-normalised text embeddings; row i matches row i of `audio`.
        tau: temperature, a positive number or a 0-d tensor.
        bias: the bias β, a number or a 0-d tensor; None: `starting_bias`, logits near −10 in both forms.
        form: `"glap"` or `"siglip"`, see above.

    Returns:
        0-d tensor, float32 at least.

    Raises:
        ValueError: wrong shapes, a temperature that is not positive, a bias that is not finite, an unknown form.
        TypeError: embeddings that are not floating point.

    Example:
        >>> pairs = torch.eye(3)
        >>> siglip(pairs, pairs, tau=0.1, bias=-0.5)  # logits of 5 for pairs, of −5 for all others
        tensor(0.0201)
    """
    check_temperature(tau)
    check_number("bias", bias, or_none=True)
    check_choice("form", form, get_args(Form))
    if bias is None:
        bias = starting_bias(tau, form)
    with checked(audio=audio, text=text) as (a, t):
        if not fits(len(t)):
            return _tiled(a, t, tau, bias, form)
        similarity = t @ a.T
        logits = (similarity + bias) / tau if form == "glap" else similarity / tau + bias  # Eq. 2
        psi = 2 * torch.eye(len(t), dtype=logits.dtype, device=logits.device) - 1
        return -F.logsigmoid(logits * psi).sum() / len(t)  # Eq. 1


def _tiled(audio: Tensor, text: Tensor, tau: float | Tensor, bias: float | Tensor, form: Form) -> Tensor:
    """The same without the N × N logits."""
    scale, offset = inverse(tau, text), torch.as_tensor(bias).to(text)
    offset = offset * scale if form == "glap" else offset
    return tiled(text[None], audio[None], _Pairs(text), scale, offset)


class _Pairs(Rule):
    """Σ −log σ(ψ·score) over all pairs: softplus of every score, of the negated one on the diagonal."""

    spare = True

    def __init__(self, like: Tensor) -> None:
        self.sum = like.new_zeros(())

    def see(self, scores: Tensor, spare: Tensor, tile: Tile, slopes: bool) -> None:
        positive, diagonal = take_positives(scores, tile)  # −∞ is left in their place, of which softplus and σ are 0
        pushes = F.softplus(scores, threshold=EXACT, out=spare).sum()
        self.sum += pushes + F.softplus(-positive, threshold=EXACT).sum()
        if slopes:
            torch.sigmoid(scores, out=scores)
            diagonal.copy_(-torch.sigmoid(-positive))


def starting_bias(tau: float | Tensor, form: Form) -> float | Tensor:
    """The bias that SigLIP starts with in either form: −10 beside s/τ.

    Example:
        >>> starting_bias(0.1, "siglip"), starting_bias(0.1, "glap")
        (-10.0, -1.0)
    """
    return -10.0 * tau if form == "glap" else -10.0


class SigLIP(Tempered):
    """`siglip` with learnable or fixed temperature and bias.

    Default: SigLIP's published start, 1/τ = 10 and −10 beside s/τ. It was made for batches of thousands: the bias at
    which a batch of N with equal similarities pulls as much as it pushes is near −log(N − 1) (times τ with
    `form="glap"`). GLAP prints τ = 0.07 and β = −10 in Eq. 2: `SigLIP(0.07, -10)`; its published code has them in s/τ
    + β, and τ learns as it is: `SigLIP(0.07, -10, form="siglip", raw_tau=True)`. learn_bias=False: a control in which
    only the temperature learns.

    Example:
        >>> SigLIP(0.1, -0.5)(torch.eye(3), torch.eye(3)).value.item()  # doctest: +ELLIPSIS
        0.0201...
    """

    def __init__(
        self,
        tau: float = 0.1,
        bias: float | None = None,
        *,
        form: Form = "glap",
        learnable: bool = True,
        max_scale: float = 100.0,
        raw_tau: bool = False,
        learn_bias: bool = True,
    ) -> None:
        super().__init__(tau, learnable=learnable, max_scale=max_scale, raw_tau=raw_tau)
        check_number("bias", bias, or_none=True)
        check_choice("form", form, get_args(Form))
        start = torch.tensor(float(starting_bias(tau, form) if bias is None else bias))
        self.form = form
        if learnable and learn_bias:
            self.bias = nn.Parameter(start)
        else:
            self.register_buffer("bias", start)

    @property
    def learnt(self) -> dict[str, Tensor]:
        """`bias`."""
        return {"bias": self.bias.detach()}

    def forward(self, audio: Tensor, text: Tensor) -> Output:
        """`(N, d)`, `(N, d)` → the loss."""
        return Output(siglip(audio, text, self.tau, self.bias.to(audio.dtype), self.form))


class SigLIPLanguages(SigLIP):
    """SigLIP of every language, and their mean; one temperature and one bias for all.

    As KCL with `candidates="language"`, it compares a clip with the texts of one language at a time: a translation is
    no negative. No paper has it; it lets loss and languages vary by themselves. With one language it is SigLIP.

    Args:
        see `SigLIP`.

    Example:
        >>> SigLIPLanguages(0.1, -0.5)(torch.eye(3), torch.eye(3)).value.item()  # doctest: +ELLIPSIS
        0.0201...
    """

    languages = "each"


CARDS = (
    LossCard(
        name="siglip",
        make=SigLIP,
        title="SigLIP",
        about="Sigmoid for every pair of the batch on its own: does this text fit this clip?",
        source="SigLIP; GLAP Eq. 1–2",
        citation="siglip",
        colour="vermilion",
    ),
    LossCard(
        name="siglip-languages",
        make=SigLIPLanguages,
        title="SigLIP, each language",
        about="SigLIP of a clip and its text in every language, the mean over languages: KCL with a sigmoid.",
        source="ours; after SigLIP and ATRI Eq. 9",
        citation="siglip",
        sampling="all",
    ),
)
