"""What every loss must satisfy; a new one is tested by having a card."""

import warnings

import numpy as np
import pytest
import torch
from embeddings import pairs as unit_pairs, refuses_bad_pairs
from loss_contract import CHECKS, check_half_precision, check_scale, given, made

from pullpush import losses, precision
from pullpush.losses import SVR, TERMS, InfoNCE, Loss, Output, Tempered, info_nce


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("name", TERMS)
def test_keeps_the_contract(name, check):
    check(name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", TERMS)
def test_half_precision_is_computed_in_single(name, dtype):
    check_half_precision(name, dtype)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 30.0])
@pytest.mark.parametrize("name", TERMS)
def test_is_finite_at_any_scale(name, scale):
    check_scale(name, scale)


def test_a_loss_whose_forward_is_not_as_declared_is_refused():
    with pytest.raises(TypeError, match=r"Odd.forward takes \(audio, texts\), but .* needs = \('audio', 'text'\)"):

        class Odd(Loss):
            def forward(self, audio, texts):
                return Output(texts.sum())

    with pytest.raises(ValueError, match="need of the loss Odder 'txt': did you mean 'text'"):

        class Odder(Loss):
            needs = ("audio", "txt")

            def forward(self, audio, txt):
                return Output(txt.sum())

    with pytest.raises(TypeError, match="for losses of audio and text"):

        class Oddest(Loss):
            needs, languages = ("audio", "texts"), "each"

            def forward(self, audio, texts):
                return Output(texts.sum())

    with pytest.raises(TypeError, match="texts and other stand in needs"):

        class Oddly(Loss):
            uses = ("texts",)

            def forward(self, audio, text, texts=None):
                return Output(texts.sum())


@pytest.mark.parametrize(
    ("given_back", "said"),
    [
        (lambda x: x.mean(), r"a tensor of shape \(\)"),
        (lambda x: Output(x.sum(dim=1)), r"a tensor of shape \(3,\)"),
        (lambda x: Output(0.5), "float"),
        (lambda x: None, "None"),
    ],
)
def test_a_loss_that_gives_no_output_of_one_number_is_refused(given_back, said):
    class Odd(Loss):
        def forward(self, audio, text):
            return given_back(audio)

    with pytest.raises(TypeError, match=rf"Odd.forward gave {said}: return Output\(value\)"):
        Odd()(torch.eye(3), torch.eye(3))


def test_a_report_of_more_than_a_number_is_refused():
    class Odd(Loss):
        def forward(self, audio, text):
            return Output(audio.sum(), {"spread": audio.std(dim=1)})

    with pytest.raises(TypeError, match=r"Odd\.forward reports 'spread', which is more than one number"):
        Odd()(torch.eye(3), torch.eye(3))


def test_a_temperature_that_would_not_learn_is_refused():
    with pytest.raises(ValueError, match=r"let it learn \(learnable=True\), or give yours with each call"):
        InfoNCE(tau=torch.nn.Parameter(torch.tensor(0.07)))


@pytest.mark.parametrize(
    ("further", "named"),
    [((0.07,), {}), ((), {"temperature": 0.07}), ((), {"audio": torch.eye(3)})],
    ids=["more", "unknown", "twice"],
)
def test_what_a_loss_does_not_take_is_refused(further, named):
    with pytest.raises(TypeError, match=rf"InfoNCE takes \(audio, text\), each once, got \(.*{''.join(named)}\)"):
        InfoNCE()(torch.eye(3), torch.eye(3), *further, **named)


def test_what_a_loss_gives_back_has_names():
    value, report = InfoNCE()(torch.eye(3), torch.eye(3))
    assert value == InfoNCE()(text=torch.eye(3), audio=torch.eye(3)).value
    assert dict(report) == {}


def pairs(n=4, d=3):
    torch.manual_seed(n)
    return torch.nn.functional.normalize(torch.randn(2, n, d), dim=-1).requires_grad_()


def test_a_loss_compiles_to_one_graph():
    audio, text = pairs()
    compiled = torch.compile(InfoNCE(), backend="eager", fullgraph=True)
    assert torch.equal(compiled(audio, text).value, InfoNCE()(audio, text).value)


def test_outputs_add_and_take_weights_as_their_values_do():
    audio, text = leaf = pairs()
    once, svr = InfoNCE()(audio, text), SVR(radius=0.2)
    both = sum([once, 0.5 * svr(audio, text), svr(audio, text)])
    assert both.value.item() == pytest.approx((once.value + 1.5 * svr(audio, text).value).item())
    assert set(both.report) == {"radius", "radius 2"}
    assert (once + 1.0).value == once.value + 1
    assert (both / 4).item() == (both.value / 4).item()
    assert (np.float64(2) * once).value == (np.float64(1) + once).value + once.value - 1
    both.backward()
    assert leaf.grad.abs().sum() > 0


@pytest.mark.parametrize("name", [name for name in TERMS if issubclass(TERMS[name].make, Tempered)])
def test_a_call_may_bring_its_temperature(name):
    loss = made(name).double()
    tensors = given(loss)
    scale = torch.tensor(0.4, requires_grad=True)
    changed = loss(**tensors, tau=scale)
    assert changed.value != loss(**tensors).value
    assert torch.autograd.grad(changed.value, scale)[0] != 0
    assert "_given" not in dict(loss.named_parameters())


def test_a_loss_that_is_not_told_fits_the_first_batch():
    svr, audio, text = SVR(), *pairs(6)
    optimiser = torch.optim.Adam(svr.parameters(), lr=0.1)  # made before, as trainers do
    with torch.inference_mode():
        svr(audio, text)  # a validation before any training, as trainers do, too
    svr(audio, text).backward()
    assert svr.predictor.layers[0].weight.grad is not None
    optimiser.step()
    assert svr.predictor.batch_size == 6
    assert svr(audio, text).report["radius"] != pytest.approx(0.1)
    again = SVR()
    again.load_state_dict(svr.state_dict())
    assert again(audio, text).value == svr(audio, text).value
    with pytest.raises(ValueError, match=r"a batch of 7 does not fit .* as by SVR\(batch_size=7\)"):
        svr(*pairs(7))


def test_embeddings_that_are_not_of_unit_length_are_said_once(monkeypatch):
    monkeypatch.setattr(precision, "_DONE", set())
    audio, text = pairs().detach()
    with warnings.catch_warnings(action="error"):
        info_nce(audio, text)
        info_nce(audio, torch.cat([text[:3], torch.zeros(1, 3)]))  # the row of a missing text
    with pytest.warns(UserWarning, match=r"text is not of unit length \(mean norm 3\)"):
        info_nce(audio, 3 * text)
    with warnings.catch_warnings(action="error"):
        InfoNCE()(5 * audio, text)


@pytest.mark.parametrize("name", TERMS)
def test_every_loss_looks_at_all_lengths(name, monkeypatch):
    loss = made(name).double()
    for need in {*loss.needs} & {*losses.contract.NEEDS} - {"teacher_similarity", "clusters", "ids"}:
        monkeypatch.setattr(precision, "_DONE", set())
        with pytest.warns(UserWarning, match=f"^{need} is not of unit length"):
            loss(**(batch := given(loss)) | {need: 3 * batch[need]})


@pytest.mark.parametrize("card", TERMS.values(), ids=lambda card: card.name)
def test_every_loss_says_how_directions_are_joined(card):
    """In the docstring of its function: "Scale: …"."""
    functions = [getattr(losses, name) for name in losses.__all__ if name.islower()]
    of_file = [function for function in functions if getattr(function, "__module__", "") == card.make.__module__]
    assert any("Scale: " in function.__doc__ for function in of_file)


@pytest.mark.parametrize("function", [losses.focal, losses.label_smoothing, losses.additive_margin, losses.svr_softmax])
def test_a_loss_that_does_not_go_in_tiles_says_what_it_holds(function):
    assert "All N × N similarities are held at once" in function.__doc__


NAN = float("nan")
SHARED = [({"direction": "up"}, "direction must be one of"), ({"tau": 0.0}, "tau must be positive")]
BAD = {
    "infonce": [],
    "additive-margin": [({"margin": NAN}, "margin must be finite"), ({"margin": -1e400}, "margin must be finite")],
    "focal": [({"gamma": -0.5}, "gamma must be at least 0, got -0.5"), ({"gamma": NAN}, "gamma must be finite")],
    "scaled-push": [({"perpendicular": NAN}, "perpendicular must be finite"), ({"part": "up"}, "part must be one of")],
    "simple-reweight": [
        ({"form": "loss"}, "form must be one of"),
        ({"form": "softmax", "weight": 0}, "weight must be positive"),
    ],
    "svr": [({"radius": NAN}, "radius must be finite"), ({"similarity": "l2"}, "similarity must be one of")],
    "svr-parts": [({"radius": NAN}, "radius must be finite"), ({"similarity": "l2"}, "similarity must be one of")],
    "svr-softmax": [({"radius": NAN}, "radius must be finite")],
}
CASES = [(name, *case) for name, bad in BAD.items() for case in [*bad, *SHARED]]


@pytest.mark.parametrize(("name", "options", "message"), CASES)
def test_bad_options_are_named_by_modules_and_functions_alike(name, options, message):
    with pytest.raises(ValueError, match=message):
        TERMS[name].make(**options)
    needed = {"scaled-push": {"perpendicular": 1.0}, "simple-reweight": {"weight": 1.0}}
    needed |= {key: {"radius": 0.1} for key in ("svr", "svr-parts", "svr-softmax")}
    function = "info_nce" if name == "infonce" else name.replace("-", "_")
    with pytest.raises(ValueError, match=message):
        getattr(losses, function)(*unit_pairs(3), **{**needed.get(name, {}), **options})


FUNCTIONS = {
    **dict.fromkeys(("info_nce", "focal", "label_smoothing", "cross_cyclic", "in_modal_cyclic"), ()),
    **dict.fromkeys(("additive_margin", "scaled_push", "svr", "svr_parts", "svr_softmax", "simple_reweight"), (0.1,)),
    "siglip": (0.1, -10.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_name_bad_pairs(name):
    refuses_bad_pairs(lambda audio, text: getattr(losses, name)(audio, text, *FUNCTIONS[name]))
