"""Probes of losses: values, reports and gradients, of a card by what it says of itself, so that a new loss has one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from inspect import Parameter, signature
from types import UnionType
from typing import Any, Literal, TypeGuard, Union, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

from pullpush.golden.compare import Values
from pullpush.golden.probes import Probes, numbers, seen, sphere
from pullpush.losses import NEEDS, TERMS, Loss, Offer, Output, _tiles, apply
from pullpush.parallel import drawing

N, D, K = 5, 6, 3  # clips, dimensions, languages
NECESSARY: Mapping[str, Any] = {"dim": D, "topics": K}  # options without a default
USUAL: Mapping[str, Any] = {"batch_size": 24}  # options that what comes first decides on
REFUSALS = (ArithmeticError, IndexError, RuntimeError, TypeError, ValueError)
Given = dict[str, Tensor]
PROBES = Probes("losses", 1e-6, cards=lambda: TERMS, of_card=lambda name: numbers_of(TERMS[name].make), look=seen)


def numbers_of(make: type[Loss]) -> Values:
    """What a loss computes: values, reports, and gradients by embeddings and parameters, in float64.

    It is made as it is by default, and with each option changed, one at a time: every value of a `Literal` or of a
    truth value, another number in place of a number. Then, as it is by default: for one clip; where a clip and its
    text are one point; in tiles; without what it merely uses; on half-precision embeddings; applied to texts in three
    languages, of which some are missing. What it refuses, but its default, is "refused".

    >>> from pullpush.losses import InfoNCE
    >>> values = numbers_of(InfoNCE)
    >>> values["plain"]["value"].detach(), [name for name in values if "a2t" in name]
    (tensor(4.8074, dtype=torch.float64), ["direction='a2t'"])
    """
    given = drawn()
    values: dict[str, Any] = {
        "declared": [list(make.needs), list(make.uses), make.languages, make.shares_temperature],
        "at first": _of_parameters(list(_new(make).parameters())),
        "plain": _sloped(make, given),
    }
    cases = {f"{name}={value!r}": partial(_sloped, make, given, **{name: value}) for name, value in _changes(make)}
    if make.uses:
        cases["without what it uses"] = partial(_sloped, make, {name: given[name] for name in make.needs})
    cases |= {
        "one clip": partial(_sloped, make, drawn(1)),
        "in one point": partial(_sloped, make, _in_one_point(given)),
        "in tiles": partial(in_tiles(2 * N)(_sloped), make, given),
        "half precision": partial(_halved, make, given),
        "languages": partial(_sloped, make, {**given, "present": None}, _applied),
        "missing texts": partial(_sloped, make, given, _applied),
    }
    for case, run in cases.items():
        try:
            values[case] = run()
        except REFUSALS:
            values[case] = "refused"
    return values


def drawn(n: int = N) -> Given:
    """All that a batch of n clips may offer, by the names of `NEEDS`."""
    chance = torch.Generator().manual_seed(n)
    given = {name: torch.randint(0, 3, (n,), generator=chance) for name in ("clusters", "ids", "text_ids")}
    given["clusters"][0] = -1  # a clip of no topic
    given["teacher_similarity"] = numbers(n, n, seed=1).tanh()
    given["texts"] = sphere(n, K, D, seed=2)
    given["present"] = torch.rand(n, K, generator=chance) < 0.7
    given["present"][0] = True
    return {name: given[name] if name in given else sphere(n, D, seed=3 + at) for at, name in enumerate(NEEDS)}


@contextmanager
def in_tiles(scores: int) -> Iterator[None]:
    """Let losses hold no more than so many similarities at once, as they do above some thousands of clips."""
    before = _tiles.BLOCK
    _tiles.BLOCK = scores
    try:
        yield
    finally:
        _tiles.BLOCK = before


def _is_embedding(x: Tensor | None) -> TypeGuard[Tensor]:
    return x is not None and x.is_floating_point() and x.shape[-1] == D


def _in_one_point(given: Given) -> Given:
    """The same, but of the first clip, which all embeddings put in one point."""
    near = {name: x.clone() for name, x in given.items()}
    for x in filter(_is_embedding, near.values()):
        x[0] = given["audio"][0]
    return near


def _changes(make: type[Loss]) -> Iterator[tuple[str, Any]]:
    """Options of a loss, each with a value that is not its default."""
    try:
        hints = get_type_hints(make.__init__)
    except (NameError, TypeError):  # names that are imported for the type checker alone
        hints = {}
    for name, option in signature(make).parameters.items():
        if option.default is not Parameter.empty:
            hint, default = hints.get(name, type(option.default)), USUAL.get(name, option.default)
            yield from ((name, value) for value in _others(hint, default) if value != default)


def _others(hint: Any, default: Any) -> Iterator[Any]:
    """Values that an option might have, by its type."""
    for kind in get_args(hint) if isinstance(hint, UnionType) or get_origin(hint) is Union else (hint,):
        if get_origin(kind) is Literal:
            yield from get_args(kind)
        elif kind is bool:
            yield not default
        elif kind is int:
            yield (default or 0) + 1
        elif kind is float:
            yield 1.25 * default if default else 0.3


def _new(make: type[Loss], **options: Any) -> Loss:
    """A loss with the weights that it has at first."""
    for name, option in signature(make).parameters.items():
        if option.default is Parameter.empty and option.kind is not Parameter.VAR_KEYWORD:
            options.setdefault(name, NECESSARY.get(name, 0.3))
        elif name == "batch_size":
            options.setdefault(name, N)
    with drawing(0):
        return make(**options)


def _made(make: type[Loss], **options: Any) -> Loss:
    """A loss in float64 with weights of its networks that let all of them count."""
    loss = _new(make, **options).double()
    with torch.no_grad():
        for place, weights in enumerate(loss.parameters()):
            if weights.ndim:
                weights.copy_(numbers(*weights.shape, seed=place) / (2 * weights.shape[-1] ** 0.5))
    return loss


def _called(loss: Loss, given: Given) -> Output:
    return loss(**{name: given[name] for name in (*loss.needs, *loss.uses) if name in given})


def _applied(loss: Loss, given: Given) -> Output:
    """Applied to a batch with texts in other languages, one where the loss takes one."""
    others = given["texts"][:, 1:].unbind(dim=1)
    known = {name: given[name] for name in Offer._fields if name in (*loss.needs, *loss.uses)}
    known |= {"audio": given["audio"], "text": given["texts"][:, 0], "present": given["present"]}
    return apply(loss, Offer(**known, parallel=others[:1] if "other" in loss.needs else others))


def _sloped(
    make: type[Loss], given: Mapping[str, Tensor | None], use: Callable[[Loss, Given], Output] = _called, **options: Any
) -> Values:
    """Value, report and what is learnt, and the gradients by all that one can be taken by."""
    loss = _made(make, **options)
    leaves = {name: x.clone().requires_grad_() if _is_embedding(x) else x for name, x in given.items()}
    value, report = use(loss, leaves)  # pyrefly: ignore[bad-argument-type]
    sources = {name: x for name, x in leaves.items() if x is not None and x.requires_grad}
    inputs = [*sources.values(), *(x for x in loss.parameters() if x.requires_grad)]
    slopes = torch.autograd.grad(value, inputs, allow_unused=True) if value.requires_grad else [None] * len(inputs)
    return {
        "value": value,
        **report,
        **loss.learnt,
        **{f"gradient of {name}": x for name, x in zip(sources, slopes, strict=False) if x is not None},
        "gradient": _of_parameters(slopes[len(sources) :]),
    }


def _of_parameters(tensors: Sequence[Tensor | None]) -> Values:
    """What stands in the place of a loss's parameters: its numbers by their places, its networks all together."""
    single = {f"number {at}": x for at, x in enumerate(tensors) if x is not None and x.ndim == 0}
    networks = [x.flatten() for x in tensors if x is not None and x.ndim]
    return {**single, **({"networks": torch.cat(networks)} if networks else {})}


def _halved(make: type[Loss], given: Given) -> Values:
    """The value of embeddings in bfloat16 and under autocast, of which a loss sees float32."""
    halves = {name: x.to(torch.bfloat16) if x.is_floating_point() else x for name, x in given.items()}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = _called(_made(make).float(), halves).value
    return {"value": value, "dtype": str(value.dtype)}
