"""What every loss must satisfy, as checks of one term by its name; also for losses that a reader adds.

`test_contract.py` runs them for all of `TERMS`, `test_one_file.py` for a toy.
"""

from collections.abc import Callable
from inspect import Parameter
from typing import Any

import pytest
import torch
from embeddings import sphere
from torch import Tensor

from pullpush.losses import NEEDS, TERMS, Loss, Output
from pullpush.training import Term

D, K = 6, 3
SENTENCES = ("premise", "second_premise", "entailment", "contradiction")


NECESSARY: dict[str, Any] = {"topics": 3, "dim": D}  # options without a default, for what `given` draws


def options(name: str) -> dict[str, Any]:
    """The options that the loss must be given."""
    defaults = TERMS[name].defaults.items()
    return {key: NECESSARY[key] for key, value in defaults if value is Parameter.empty and key in NECESSARY}


def made(name: str, n: int = 5) -> Loss:
    """The loss with its defaults, for batches of n."""
    return Term(name, options=options(name)).create(batch_size=n)


def given(loss: Loss, n: int = 5, *, seed: int = 0, dtype: torch.dtype = torch.float64, scale: float = 1) -> Any:
    """All that the loss needs or uses, by name."""
    generator = torch.Generator().manual_seed(seed)
    draw = {name: torch.randint(0, 3, (n,), generator=generator) for name in ("clusters", "ids", "text_ids")}
    draw["present"] = torch.rand(n, K, generator=generator) < 0.7
    draw["present"][:, 0] = True
    draw["teacher_similarity"] = (torch.rand(n, n, generator=generator, dtype=torch.float64) * 2 - 1).to(dtype)
    for number, name in enumerate(("audio", "text", "other", "second_text", *SENTENCES)):
        draw[name] = scale * sphere(n, D, seed=seed + number, dtype=dtype)
    draw["texts"] = scale * sphere(n, K, D, seed=seed + 12, dtype=dtype)
    return {name: draw[name] for name in (*loss.needs, *loss.uses)}


def leaves_of(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors that gradients may reach: what teachers say is given."""
    return {name: x for name, x in tensors.items() if x.is_floating_point() and name != "teacher_similarity"}


def check_card(name: str) -> None:
    """Its card says what figures and pages need; its needs exist."""
    card = TERMS[name]
    assert card.name == name
    assert card.title
    assert card.about[-1] in ".?"
    assert issubclass(card.make, Loss)
    assert {*card.make.needs, *card.make.uses} <= {*NEEDS}
    assert card.sampling in ("fixed", "random", "pair", "all")


def check_value(name: str) -> None:
    """0-d, finite, in the dtype that came; the report is 0-d and detached; nothing is remembered."""
    loss = made(name).double().eval()
    before = {key: value.clone() for key, value in loss.state_dict().items()}
    output = loss(**given(loss))
    assert isinstance(output, Output)
    assert output.value.shape == ()
    assert output.value.dtype == torch.float64
    assert output.value.isfinite()
    for numbers in (output.report, loss.learnt):
        assert all(number.shape == () and not number.requires_grad for number in numbers.values())
    again = loss(**given(loss))
    assert torch.equal(again.value, output.value)
    assert all(torch.equal(again.report[key], value) for key, value in output.report.items())
    assert loss(*given(loss).values()).value == output.value, "by position as by name"
    assert all(torch.equal(value, before[key]) for key, value in loss.state_dict().items())


def check_order_of_clips(name: str) -> None:
    """A permutation of the batch changes nothing, unless the card says that the order counts."""
    loss = made(name).double()
    stirred(loss)
    tensors, order = given(loss), torch.tensor([3, 0, 4, 1, 2])
    moved = {key: tensor[order] for key, tensor in tensors.items()}
    if "teacher_similarity" in moved:
        moved["teacher_similarity"] = moved["teacher_similarity"][:, order]
    same = torch.allclose(loss(**moved).value, loss(**tensors).value, rtol=1e-9, atol=1e-12)
    assert same is not TERMS[name].ordered


def stirred(loss: Loss) -> None:
    """Give the weights of networks values of their own."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in loss.parameters():
            if parameter.ndim:
                parameter.copy_(torch.randn(parameter.shape, generator=generator))


def check_one_clip(name: str) -> None:
    """A batch of one clip is finite, with its gradients."""
    loss = made(name, 1)
    tensors = given(loss, 1, dtype=torch.float32)
    assert finite_with_gradients(loss, tensors)


def finite_with_gradients(loss: Loss, tensors: dict[str, Tensor]) -> bool:
    """Whether value and all gradients are finite."""
    leaves = {key: tensor.detach().clone().requires_grad_() for key, tensor in leaves_of(tensors).items()}
    value = loss(**tensors | leaves).value
    weights = [parameter for parameter in loss.parameters() if parameter.requires_grad]
    gradients = torch.autograd.grad(value, [*leaves.values(), *weights], allow_unused=True)
    return bool(value.isfinite()) and all(g is None or bool(g.isfinite().all()) for g in gradients)


def check_half_precision(name: str, dtype: torch.dtype) -> None:
    """Half precision is computed in float32, also under autocast."""
    loss = made(name)
    halves = given(loss, dtype=dtype)
    exact = loss(**{key: x.float() if x.is_floating_point() else x for key, x in halves.items()}).value
    value = loss(**halves).value
    assert value.dtype == torch.float32
    assert torch.equal(value, exact)
    singles = given(loss, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = loss(**singles).value
    assert torch.equal(inside, loss(**singles).value)


def check_gradient(name: str) -> None:
    """Autograd agrees with finite differences in float64."""
    loss = made(name, 4).double()
    tensors = given(loss, 4, seed=3)
    leaves = leaves_of(tensors)
    weights = [parameter for parameter in loss.parameters() if parameter.requires_grad and not parameter.ndim]

    def value(*inputs: Tensor) -> Tensor:
        return loss(**tensors | dict(zip(leaves, inputs, strict=False))).value

    inputs = [tensor.requires_grad_() for tensor in leaves.values()]
    assert torch.autograd.gradcheck(value, (*inputs, *weights))


def check_scale(name: str, scale: float) -> None:
    """Temperatures from sharp to flat and embeddings that nobody normalised stay finite in float32."""
    for tau in (0.005, 5.0) if "tau" in TERMS[name].defaults else (None,):
        loss = Term(name, options=options(name) | ({} if tau is None else {"tau": tau})).create(batch_size=5)
        assert finite_with_gradients(loss, given(loss, dtype=torch.float32, scale=scale))


def check_bad_input(name: str) -> None:
    """A wrong shape or type, or a need that is missing, is named."""
    loss = made(name)
    good = given(loss)
    for key in loss.needs:
        with pytest.raises(TypeError, match=key):
            loss(**{**good, key: None})
        with pytest.raises(TypeError, match=key):
            loss(**{**good, key: good[key].to(torch.complex64)})
        with pytest.raises(ValueError, match=key):
            loss(**{**good, key: good[key][..., None, None]})
        if len(good) > 1:
            with pytest.raises(ValueError, match=key):
                loss(**{**good, key: good[key][:-1]})


CHECKS: tuple[Callable[[str], None], ...] = (
    check_card,
    check_value,
    check_order_of_clips,
    check_one_clip,
    check_gradient,
    check_bad_input,
)
