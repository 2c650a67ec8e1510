"""The semantic radius R: what it may be, and DynamicSVR's network that predicts it (SupCLAP §3.2, Appendix B)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.checks import check_count, check_floats, check_number
from pullpush.precision import no_autocast


def radius_constraint(radius: float | Tensor, distance: Tensor) -> Tensor:
    """L_cons = ReLU(R − ‖a⁺ − t⁺‖) + ReLU(−R), mean over N (SupCLAP Appendix B), without its weight β.

    Zero for 0 ≤ R ≤ ‖a⁺ − t⁺‖, where 1 − R/‖a⁺ − t⁺‖ lies in [0, 1]: the perpendicular push is neither inverted nor
    magnified.

    Args:
        radius: R, a number, a 0-d tensor or `(N,)`.
        distance: `(N,)` ‖a⁺ − t⁺‖. Gradients reach it too, and would push pairs *apart*: detach it where the
            constraint is to teach the radius only, as `SVR` does.

    Returns:
        0-d tensor.

    Raises:
        ValueError: shapes that do not fit.

    Example:
        >>> radius_constraint(0.8, torch.tensor([0.5, 1.0]))  # 0.3 too far for the first pair
        tensor(0.1500)
    """
    check_floats(distance=distance)
    if distance.ndim != 1 or len(distance) == 0:
        raise ValueError(f"distance must have shape (N,) with N ≥ 1, got {tuple(distance.shape)}")
    return outside(check_radius(radius, distance, distance.shape), distance)


class RadiusPredictor(nn.Module):
    """DynamicSVR's f_θ: the similarities of an anchor, its positive first, to its radius (SupCLAP §3.2).

    A perceptron of three layers, `batch_size` → `hidden` → `hidden` → 1. Its input is as wide as the batch, so:

    - A shorter batch, as the last of an epoch, is filled up by repeating each row's own negatives in turn: the
      network sees the distribution that it knows. A row without negatives (N = 1) is filled with zeros, the
      similarity of unrelated embeddings.
    - A longer batch is refused. Without `batch_size` the first batch that comes says how wide the input is.
    - Negatives come in the order of the batch, as in the paper, so that a permutation of the batch may change R.

    The last layer starts at zero weight and bias `initial`: at first every radius is `initial`, as StaticSVR's.

    Example:
        >>> RadiusPredictor(batch_size=4, initial=0.1)(torch.zeros(3, 3)).detach()
        tensor([0.1000, 0.1000, 0.1000])
    """

    def __init__(self, batch_size: int | None = None, *, hidden: int = 64, initial: float = 0.0) -> None:
        super().__init__()
        if batch_size is not None:
            check_count("batch_size", batch_size)
        check_count("hidden", hidden)
        check_number("initial", initial)
        first = nn.LazyLinear(hidden) if batch_size is None else nn.Linear(batch_size, hidden)
        self.layers = nn.Sequential(first, nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        nn.init.zeros_(self.layers[-1].weight)
        nn.init.constant_(self.layers[-1].bias, initial)

    @property
    def batch_size(self) -> int:
        """The largest batch; 0 before the first, where none was given."""
        weight = self.layers[0].weight
        return 0 if nn.parameter.is_lazy(weight) else weight.shape[1]

    def forward(self, similarity: Tensor) -> Tensor:
        """`(N, N)` similarities, the positive in column 0 (see `positive_first`), N ≤ batch_size → `(N,)` radii.

        Or `(G, N, N)` → `(G, N)`.

        Raises:
            ValueError: not `(N, N)`, or more rows than `batch_size`.
        """
        check_floats(similarity=similarity)
        n = similarity.shape[-1]
        if similarity.ndim not in (2, 3) or similarity.shape[-2] != n or n == 0:
            raise ValueError(
                f"similarity must have shape (N, N) or (G, N, N) with N ≥ 1, got {tuple(similarity.shape)}"
            )
        if n > (self.batch_size or n):
            raise ValueError(
                f"a batch of {n} does not fit a RadiusPredictor made for batch_size={self.batch_size}: "
                f"make it for your largest batch, as by SVR(batch_size={n})"
            )
        if not self.batch_size:  # weights that are made in inference mode would never learn
            with torch.inference_mode(False):
                self.layers[0].initialize_parameters(similarity.new_empty(n))
        with no_autocast(similarity):
            first = self.layers[0].weight
            return self.layers(self._fill(similarity.to(first.dtype))).squeeze(-1)

    def _fill(self, similarity: Tensor) -> Tensor:
        """`(…, N, N)` → `(…, N, batch_size)`: repeat each row's negatives until it is full."""
        n = similarity.shape[-1]
        missing = (self.batch_size or n) - n
        if missing == 0:
            return similarity
        if n == 1:
            return F.pad(similarity, (0, missing))
        columns = 1 + torch.arange(missing, device=similarity.device) % (n - 1)
        return torch.cat([similarity, similarity[..., columns]], dim=-1)


def positive_first(similarity: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`(N, N)` similarities with positives on the diagonal → each row's positive first, then its negatives in order.

    Or `(G, N, N)` → `(G, N, N)`. `out`: where to put the result, of its shape and dtype; not for gradients.

    Example:
        >>> positive_first(torch.tensor([[1, 2], [3, 4]]))
        tensor([[1, 2],
                [4, 3]])
    """
    *groups, n, columns = similarity.shape
    if n != columns:
        raise ValueError(f"similarity must be (N, N), a positive in each row's diagonal, got {tuple(similarity.shape)}")
    # Rows of N + 1 start one past a diagonal element, so that the next one is in the last column.
    negatives = similarity.flatten(-2)[..., 1:].view(*groups, n - 1, n + 1)[..., :-1].reshape(*groups, n, n - 1)
    return torch.cat([similarity.diagonal(dim1=-2, dim2=-1).unsqueeze(-1), negatives], dim=-1, out=out)


def outside(radius: Tensor, distance: Tensor) -> Tensor:
    """L_cons, 0-d: how far R, 0-d or of the shape of `distance`, lies outside 0 to ‖a⁺ − t⁺‖, on average."""
    return (F.relu(radius - distance) + F.relu(-radius)).mean()


def check_radius(radius: float | Tensor, like: Tensor, rows: torch.Size) -> Tensor:
    """R, finite, as a 0-d tensor or one of shape `rows`, of dtype and device of `like`; not looked at on a GPU."""
    if not torch.is_tensor(radius) or radius.ndim == 0:
        check_number("radius", radius)
    elif not radius.is_floating_point():
        raise TypeError(f"radius must be floating point, got {radius.dtype}")
    elif radius.device.type == "cpu" and not radius.requires_grad and not radius.isfinite().all():
        raise ValueError("radius must be finite, got NaN or infinity")
    r = torch.as_tensor(radius, dtype=like.dtype, device=like.device)
    if r.shape not in ((), rows):
        raise ValueError(f"radius must be a number, 0-d or {tuple(rows)}, one for each row; got {tuple(r.shape)}")
    return r
