"""The plain versions, which lessons show, say the same as the library, and are short."""

import ast
import inspect

import pytest
import torch
from embeddings import pairs, sphere

from pullpush import forces, losses
from pullpush.losses import plain

LINES = 8
PAPERS = ("SupCLAP", "GLAP", "ATRI", "On the Language Encoder", "Soft-Label Distillation", "a control of Soft-Label")
PAPERS += ("Focal Loss", "AM-Softmax")
FUNCTIONS = [name for name, thing in vars(plain).items() if inspect.isfunction(thing)]


def inputs(name):
    """Tensors that a method is about."""
    audio, text = pairs(6, 5)
    texts = sphere(6, 3, 5, seed=2)
    distance = (audio - text).norm(dim=1)
    return {
        "support_vector": (text, audio, 0.3),
        "svr": (audio, text, 0.3),
        "radius_constraint": (torch.linspace(-1, 3, 6, dtype=torch.float64), distance),
        "simple_reweight": (audio, text, 0.4),
        "scaled_push": (audio, text, 0.4),
        "svr_parts": (audio, text, 0.3),
        "svr_softmax": (audio, text, 0.3),
        "kcl": (audio, texts),
        "cacl": (audio, texts[:, 0], texts[:, 1]),
        "siglip": (audio, text, 0.2, -0.3),
        "nli": texts.unbind(dim=1),
        "distillation": (audio, text, audio @ texts[:, 0].T),
        "label_smoothing": (audio, text),
        "clusters": (audio, text, torch.tensor([0, 3, -1, 4, 4, 1])),
        "decompose": (text, audio),
    }.get(name, (audio, text))


def leads(x):
    """Whether a gradient may reach it."""
    return torch.is_tensor(x) and x.is_floating_point()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_value_is_that_of_the_library(name):
    library = forces.decompose if name == "decompose" else getattr(losses, name)
    ours, theirs = getattr(plain, name)(*inputs(name)), library(*inputs(name))
    for one, other in zip(ours, theirs, strict=False) if name == "decompose" else [(ours, theirs)]:
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "decompose"])
def test_gradient_is_that_of_the_library(name):
    gradients = []
    for module in (plain, losses):
        tensors = [x.clone().requires_grad_() if leads(x) else x for x in inputs(name)]
        getattr(module, name)(*tensors).sum().backward()
        gradients.append([x.grad for x in tensors if leads(x)])
    torch.testing.assert_close(*gradients)  # teachers are given, and have none


@pytest.mark.parametrize("name", FUNCTIONS)
def test_is_a_few_lines_with_its_equation(name):
    (function,) = ast.parse(inspect.getsource(getattr(plain, name))).body
    docstring, *body = function.body
    assert body[-1].end_lineno - body[0].lineno + 1 <= LINES
    assert docstring.lineno == docstring.end_lineno
    assert any(f"({paper}" in docstring.value.value for paper in PAPERS)


def test_every_method_has_a_plain_version():
    for card in losses.TERMS.values():
        name = card.name.removeprefix("sentence-").removesuffix("-languages").replace("graded", "scaled")
        assert name.replace("-", "_").replace("infonce", "info_nce") in FUNCTIONS
