"""What every loss declares: what it needs of a batch, what it gives back, how its card introduces it.

A new method is one file in this folder (or in `$PULLPUSH_EXTRA/losses`), which recipes then know by name:

    class Distance(Loss):
        def forward(self, audio, text):
            return Output((audio - text).square().sum(dim=1).mean())

    CARD = LossCard(name="distance", make=Distance, title="Distance", about="Mean squared distance of the pairs.")
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter, signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from torch import Tensor, nn

from pullpush.catalogue import Card
from pullpush.checks import kind_of
from pullpush.errors import check_all_known
from pullpush.precision import checked

if TYPE_CHECKING:
    from pullpush.losses.temperature import Temperature

Languages = Literal["main", "each", "groups"]

# What a batch may offer, by name; N clips of all processes, d dimensions.
NEEDS: Mapping[str, str] = MappingProxyType(
    {
        "audio": "(N, d), embeddings of the clips",
        "text": "(N, d), embeddings of their main texts",
        "other": "(N, d), of one more text of each clip, in another language",
        "texts": "(N, K, d), of the texts in all K languages, the main one first",
        "present": "(N, K) boolean, False where such a text is missing; given where one is",
        "second_text": "(N, d), of the main texts again, with other dropout (SimCSE)",
        "premise": "(N, d), of a sentence that comes with each clip (NLI), which need not tell of it",
        "second_premise": "(N, d), of these sentences again, with other dropout",
        "entailment": "(N, d), of a sentence that follows from each premise",
        "contradiction": "(N, d), of one that cannot be true with it: NLI's hard negative",
        "teacher_similarity": "(N, N), mean over teachers of their similarity of clip i and text j",
        "clusters": "(N,) int64, the group of each clip",
        "ids": "(N,) int64, the number of each clip in its split",
        "text_ids": "(N,) int64, equal where the main texts are the same, letter by letter",
    }
)


class Output(NamedTuple):
    """What a loss gives back: a value and what it saw. Outputs add and take weights as their values do.

    >>> import torch
    >>> from pullpush.losses import SVR, InfoNCE
    >>> audio, text = torch.eye(3), torch.eye(3).roll(1, 0).requires_grad_()
    >>> both = InfoNCE()(audio, text) + 0.5 * SVR()(audio, text)
    >>> (both / 2).backward(), text.grad.shape, dict(both.report), round(both.item())
    (None, torch.Size([3, 3]), {'radius': tensor(0.1000)}, 35)
    """

    value: Tensor
    """0-d, float32 at least: half precision does not bear a loss, nor what a `GradScaler` makes of it."""
    report: Mapping[str, Tensor] = MappingProxyType({})
    """What this call saw, such as SVR's mean radius: by name, 0-d, detached. In a sum a name that comes again is
    numbered ("radius 2")."""

    __array_ufunc__ = None  # a number of NumPy on the left leaves the sum, or the product, to what is below

    def __add__(self, other: "Output | Tensor | float") -> "Output":  # pyrefly: ignore[bad-override]
        """The sum with another loss, or with a number or 0-d tensor, as `sum` starts from 0."""
        value, report = other if isinstance(other, Output) else (other, {})
        merged = dict(self.report)
        for name, number in report.items():
            again = sum(known == name or known.startswith(f"{name} ") for known in merged)
            merged[f"{name} {again + 1}" if again else name] = number
        return Output(self.value + value, merged)

    __radd__ = __add__

    def __mul__(self, weight: float | Tensor) -> "Output":  # pyrefly: ignore[bad-override]
        """With its value times a weight; the report stays."""
        return Output(self.value * weight, self.report)

    __rmul__ = __mul__  # pyrefly: ignore[bad-override]

    def __truediv__(self, steps: float | Tensor) -> "Output":
        """With its value over a number, such as the steps that gradients are gathered in."""
        return Output(self.value / steps, self.report)

    def item(self) -> float:
        """The value as a number."""
        return self.value.item()

    def backward(self, *given: Any, **named: Any) -> None:
        """`Tensor.backward` of the value."""
        self.value.backward(*given, **named)


class Loss(nn.Module):
    """A method as a module: embeddings → `Output`. Subclasses say what they need by the names of `NEEDS`.

    needs: the arguments of `forward` in their order; uses: further ones, which default to None where a batch has none.
    languages: how a loss of (audio, text) is applied to clips with texts in several languages. "main": to the main
    text; "each": to each language, then the mean; "groups": as "each", but it also takes all at once, as
    `(G, N, d)`, for the mean over G. A loss that needs `texts` or `other` gets these as they are.
    temperature: None where a loss has none; shares_temperature: whether terms of one objective share it, as those do
    that compare clips with texts.

    Shapes are checked before `forward`, which sees float32 or float64 alone, outside autocast: a loss need not care.

    Example:
        >>> import torch
        >>> class Distance(Loss):
        ...     def forward(self, audio, text):
        ...         return Output((audio - text).square().sum(dim=1).mean())
        >>> Distance()(torch.eye(2), torch.eye(2).flip(0)).value
        tensor(2.)

    Raises:
        TypeError: a subclass whose `forward` does not take what it declares.
    """

    needs: ClassVar[tuple[str, ...]] = ("audio", "text")
    uses: ClassVar[tuple[str, ...]] = ()
    languages: ClassVar[Languages] = "main"
    shares_temperature: ClassVar[bool] = True
    temperature: "Temperature | None"

    def __init__(self) -> None:
        super().__init__()
        self.register_module("temperature", None)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.forward is nn.Module.forward:  # a base of others
            return
        check_all_known(f"need of the loss {cls.__name__}", (*cls.needs, *cls.uses), NEEDS)
        declared = dict.fromkeys(cls.needs, False) | dict.fromkeys(cls.uses, True)
        parameters = list(signature(cls.forward).parameters.values())[1:]
        takes = {parameter.name: parameter.default is not Parameter.empty for parameter in parameters}
        if list(takes.items()) != list(declared.items()):
            raise TypeError(
                f"{cls.__name__}.forward takes ({', '.join(map(str, parameters))}), but the class declares "
                f"needs = {cls.needs} and uses = {cls.uses}: name the same, with a default for what it uses"
            )
        if {"texts", "other"} & {*cls.uses} or ("present" in cls.uses and "texts" not in cls.needs):
            raise TypeError(f"{cls.__name__}: texts and other stand in needs, and present in uses beside texts")
        if cls.languages != "main" and {*cls.needs, *cls.uses} != {"audio", "text"}:
            raise TypeError(f'{cls.__name__} has languages = "{cls.languages}", which is for losses of audio and text')

    def __call__(self, *given: Tensor, **named: Tensor | None) -> Output:
        """`forward` of what is needed, by position or by name.

        Raises:
            ValueError: a shape that does not fit, or an option's value.
            TypeError: something is missing or has the wrong type; or `forward` gives no `Output` of one number.
        """
        names = (*self.needs, *self.uses)
        tensors = dict(zip(names, given, strict=False)) | named
        if len(given) + len(named) > len(tensors) or tensors.keys() - {*names}:
            got = ", ".join([*(["…"] if given else []), *named])
            raise TypeError(f"{type(self).__name__} takes ({', '.join(names)}), each once, got ({got})")
        if missing := [name for name in self.needs if tensors.get(name) is None]:
            raise TypeError(f"{type(self).__name__} needs {', '.join(missing)}: {NEEDS[missing[0]]}")
        tensors = {name: tensor for name, tensor in tensors.items() if tensor is not None}
        with checked(groups=self.languages == "groups", **tensors) as wide:
            found = super().__call__(**dict(zip(tensors, wide, strict=True)))
        if not isinstance(found, Output) or not isinstance(found.value, Tensor) or found.value.ndim:
            value = found.value if isinstance(found, Output) else found
            kind = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else kind_of(value)
            raise TypeError(f"{type(self).__name__}.forward gave {kind}: return Output(value), a tensor without axes")
        if wrong := [name for name, number in found.report.items() if getattr(number, "ndim", 0)]:
            raise TypeError(f"{type(self).__name__}.forward reports {wrong[0]!r}, which is more than one number")
        return found

    @property
    def learnt(self) -> dict[str, Tensor]:
        """The numbers that it learns, as they stand: by name, 0-d, detached (SigLIP's bias)."""
        return {}


@dataclass(frozen=True, kw_only=True)
class LossCard(Card):
    """How a loss introduces itself.

    sampling: the texts that a clip brings where the loss is trained alone, see `PairDataset`; other than "fixed", in
    all languages of the data; ordered: whether the order of the clips in a batch matters.
    """

    make: type[Loss]
    sampling: str = "fixed"
    ordered: bool = False

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Option → default; `inspect.Parameter.empty` where it must be given."""
        return {name: option.default for name, option in signature(self.make).parameters.items()}
