"""A reader's loss is one file: it is found, titled, trained and held to the contract like ours."""

from functools import partial

import pytest
import torch
from loss_contract import CHECKS, check_half_precision, check_scale
from loss_ranks import SYSTEMS, TILED, clips, plan, step, work
from ranks import of_two
from standin import TinyClips, TinyModel
from toys import DISTANCE

from pullpush.data.batches import PairDataset, collate
from pullpush.errors import TrainingError, UnknownNameError
from pullpush.golden import version
from pullpush.losses import TERMS
from pullpush.training import recipe, train
from pullpush.training.objective import Objective
from pullpush.training.recipes import RECIPES, colour, title

# A little of everything that a batch may offer.
GREEDY = '''
    """Every need at once."""
    import torch
    from pullpush.losses import LossCard, Output, Tempered


    class Greedy(Tempered):
        needs = ("audio", "text", "second_text", "contradiction", "teacher_similarity", "clusters", "ids")

        def forward(self, audio, text, second_text, contradiction, teacher_similarity, clusters, ids):
            scores = audio @ torch.cat([text, contradiction]).T / self.tau
            same = (clusters[:, None] == clusters).to(scores.dtype)
            near = (ids[:, None] - ids).abs().to(scores.dtype)
            distilled = ((audio @ text.T - teacher_similarity) * (1 + same + near)).square().mean()
            value = scores.logsumexp(dim=1).mean() + distilled - (text * second_text).sum(dim=1).mean()
            return Output(value, {"agreement": same.mean().detach()})


    CARD = LossCard(name="greedy", make=Greedy, title="Greedy", about="All needs at once.")
'''


def fit(name, data=None, epochs=2):
    one = plan(name, epochs=epochs)
    dataset = PairDataset(data or clips(12), languages=one.languages, sampling=one.sampling)
    return train(TinyModel(), one, dataset, TinyClips(8, seed=1), progress=False)


def test_a_file_is_found_and_described_by_its_card(add):
    add("losses/distance.py", DISTANCE)
    assert "distance" in TERMS
    assert "distance" in RECIPES
    assert title("infonce+distance") == "InfoNCE + Distance"
    assert colour("distance") == "sky"
    assert recipe("distance", scale=2.0).terms[0].options == {"scale": 2.0}
    with pytest.raises(UnknownNameError, match=r"did you mean 'distance\.scale'"):
        recipe("distance", **{"distance.scal": 2.0})


def test_it_trains_alone_and_in_a_sum(add):
    add("losses/distance.py", DISTANCE)
    losses = fit("distance", epochs=4).history["loss"]
    assert losses.iloc[-1] < losses.iloc[0]
    steps = fit("infonce+distance").steps
    assert steps["loss"].to_numpy() == pytest.approx((steps["loss 0 infonce"] + steps["loss 1 distance"]).to_numpy())


def test_it_is_told_apart_by_what_it_does(add):
    add("losses/distance.py", DISTANCE)
    add("losses/summed.py", DISTANCE.replace(".mean()", ".sum()").replace('"distance"', '"summed"'))
    add("losses/reworded.py", DISTANCE.replace("(audio - text)", "(text - audio)").replace('"distance"', '"reworded"'))
    assert version("losses/distance") == version("losses/reworded")
    assert version("losses/distance") != version("losses/summed")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize(("name", "text"), [("distance", DISTANCE), ("greedy", GREEDY)])
def test_it_is_held_to_the_contract(add, name, text, check):
    add(f"losses/{name}.py", text)
    check(name)


@pytest.mark.parametrize(("name", "text"), [("distance", DISTANCE), ("greedy", GREEDY)])
def test_it_need_not_care_for_precision_or_scale(add, name, text):
    add(f"losses/{name}.py", text)
    check_half_precision(name, torch.bfloat16)
    check_scale(name, 1.0)


def test_what_clips_have_in_columns_reaches_the_loss(add):
    add("losses/greedy.py", GREEDY)
    steps = fit("infonce+greedy").steps
    assert steps["loss"].notna().all()
    assert steps["agreement"].between(0, 1, inclusive="right").all()
    one, model = plan("greedy"), TinyModel(dropout=0.5)
    rows = [4, 0, 7]
    dataset = PairDataset(clips(12), columns=one.columns)
    items = [dataset[row] for row in rows]
    offer = Objective(model, one)(collate(items)).offer
    assert offer.ids.tolist() == rows
    assert offer.clusters.tolist() == [1, 0, 1]
    assert not torch.equal(offer.second_text, offer.text), "another draw of dropout"
    teachers = torch.stack([torch.as_tensor(item.columns["teachers"]) for item in items])  # (N, T, 2, D)
    for i in range(3):
        for j in range(3):
            similarity = sum(teachers[i, t, 0] @ teachers[j, t, 1] for t in range(2)) / 2
            torch.testing.assert_close(offer.teacher_similarity[i, j], similarity)
    model.eval()
    offer = Objective(model, one)(collate(items)).offer
    torch.testing.assert_close(offer.second_text, offer.text)
    negatives = [dataset.split.columns["contradiction"][row] for row in rows]
    torch.testing.assert_close(offer.contradiction, model.encode_text(negatives))


def test_a_need_that_clips_do_not_offer_is_named_with_its_remedy(add):
    add("losses/greedy.py", GREEDY)
    with pytest.raises(TrainingError, match=r"term 'greedy' needs contradiction .* a column 'contradiction'"):
        fit("infonce+greedy", TinyClips(12))
    data = clips(12)
    data.columns["contradiction"][3] = " "
    with pytest.raises(TrainingError, match=r"clips \[3\] have no contradiction"):
        fit("greedy", data)


def test_two_processes_give_the_loss_and_gradient_of_one(add, tmp_path):
    """All terms in one go: embeddings, columns and sentences are gathered, gradients flow back."""
    add("losses/greedy.py", GREEDY)
    names = [*TERMS, *SYSTEMS, *TILED]
    assert {"greedy", "nli"} <= {*names}
    parts = of_two(partial(work, names), tmp_path)
    for name in names:
        whole = step(name)
        for part in parts:
            torch.testing.assert_close(part[name]["loss"], whole["loss"], rtol=1e-12, atol=1e-12, msg=name)
            assert part[name]["gradients"].keys() == whole["gradients"].keys()
            for key, gradient in whole["gradients"].items():
                torch.testing.assert_close(part[name]["gradients"][key], gradient, rtol=1e-12, atol=1e-12, msg=key)
