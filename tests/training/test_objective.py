import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from standin import TinyClips, TinyModel

from pullpush.data.batches import PairDataset, collate
from pullpush.encoders import create
from pullpush.losses import info_nce, siglip
from pullpush.training import Diagnostics, Term, recipe
from pullpush.training.objective import Objective


def batch(n=6, **options):
    dataset = PairDataset(TinyClips(n), **options)
    return collate([dataset[row] for row in range(n)])


def test_loss_is_the_weighted_sum_of_its_terms():
    terms = (Term("infonce", 0.5, {"tau": 0.1}), Term("siglip", 2.0, {"form": "siglip"}))
    outcome = Objective(TinyModel(), recipe("infonce", terms=terms))(batch())
    audio, text = outcome.offer[:2]
    torch.testing.assert_close(
        outcome.loss, 0.5 * info_nce(audio, text, 0.1) + 2 * siglip(audio, text, 0.1, -10, "siglip")
    )


@pytest.mark.parametrize(("sampling", "count"), [("fixed", 0), ("pair", 1), ("all", 2)])
def test_parallel_texts_are_embedded_in_their_order(sampling, count):
    model = TinyModel(dropout=0)
    one = batch(languages=("eng", "fra", "zho"), sampling=sampling)
    offer = Objective(model, recipe("infonce"))(one).offer
    assert len(offer.parallel) == count
    for embedding, texts in zip(offer.parallel, one.parallel, strict=True):
        torch.testing.assert_close(embedding, model.encode_text(texts))


def test_text_encoder_is_told_the_language():
    seen = []
    model = TinyModel()
    encode = model.encode_text
    model.encode_text = lambda texts, languages: (seen.append(languages), encode(texts))[1]
    Objective(model, recipe("infonce"))(batch(n=2, languages=("fra", "zho"), sampling="all"))
    assert seen == [["fra", "fra"], ["zho", "zho"]]


def test_terms_share_one_temperature_unless_one_names_its_own():
    def temperatures(one):
        return [float(torch.as_tensor(term.tau).detach()) for term in Objective(TinyModel(), one).terms]

    assert temperatures(recipe("siglip+bi-dynamic-svr", tau=0.2)) == pytest.approx([0.2, 0.2])
    assert temperatures(recipe("siglip+bi-dynamic-svr")) == pytest.approx([0.1, 0.1])
    assert temperatures(recipe("infonce+bi-static-svr", **{"svr.tau": 0.3})) == pytest.approx([0.07, 0.3])


def test_a_learnable_temperature_is_one_parameter_that_all_terms_move():
    objective = Objective(TinyModel(), recipe("infonce-learnable+bi-static-svr"))
    learnt = [name for name, _ in objective.terms.named_parameters()]
    assert sorted(learnt) == ["0.temperature.log_scale", "1.scalar"]
    outcome = objective(batch())
    outcome.terms[1].backward()
    assert objective.temperature.log_scale.grad != 0


def test_what_a_loss_learns_is_read_after_the_step():
    objective = Objective(TinyModel(), recipe("siglip+simple-reweight"))
    outcome = objective(batch())
    assert objective.numbers(outcome) == {"bias": -10, "weight": 1}
    with torch.no_grad():
        objective.terms[0].bias += 3
    assert objective.numbers(outcome) == {"bias": -7, "weight": 1}


def test_bfloat16_keeps_the_loss_in_float32_and_the_gradient_for_the_diagnostics():
    """As on a GPU, with the real encoders."""
    AcceleratorState._reset_state(reset_partial_state=True)  # other tests chose float32
    accelerator = Accelerator(mixed_precision="bf16", cpu=True)
    try:
        model = create("cnn", "hashed", dim=8, audio_channels=(8, 8))
        objective = Objective(model, recipe("infonce"))
        optimiser = torch.optim.Adam(objective.parameters(), lr=1e-6)
        towers, optimiser = accelerator.prepare(objective, optimiser)
        one, watch = batch(), Diagnostics()
        start = watch.before(objective, one)
        outcome = towers(one)
        assert {outcome.loss.dtype, outcome.offer.audio.dtype, outcome.offer.text.dtype} == {torch.float32}
        torch.testing.assert_close(outcome.loss, info_nce(outcome.offer.audio, outcome.offer.text))
        outcome.offer.text.retain_grad()
        accelerator.backward(outcome.loss)
        optimiser.step()
        row = watch.after(objective, one, outcome.offer, start)
        assert 0 < row["displacement"] < 1e-3  # far finer than the 2⁻⁸ of bfloat16
        assert -1 <= row["gradient_drift"] <= 1
    finally:
        AcceleratorState._reset_state(reset_partial_state=True)
