"""The nearest prompt, of one a class or several: ensembles, and what the choice of one decides."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score

from pullpush.data.language.vocabulary import load_labels
from pullpush.data.languages import LANGUAGES
from pullpush.errors import UnknownNameError, unknown
from pullpush.metrics import METRICS, difference, pseudo_values, zero_shot_predictions
from pullpush.metrics._zero_shot import prompt_accuracies, spread
from pullpush.metrics.prompt_templates import GLAP, PICTURES, SOUNDS

unit = torch.nn.functional.normalize


def made(classes: int = 5, prompts: int = 4, clips: int = 60, d: int = 6):
    g = torch.Generator().manual_seed(0)
    labels = torch.arange(clips) % classes
    named = torch.randn(classes, 1, d, generator=g) + 0.7 * torch.randn(classes, prompts, d, generator=g)
    heard = named.mean(dim=1)[labels] + torch.randn(clips, d, generator=g)
    return unit(heard, dim=-1), unit(named, dim=-1), labels


def test_each_prompt_alone_and_their_normalised_mean_are_what_scikit_learn_scores():
    clips, prompts, labels = made()
    ensemble, each = prompt_accuracies(clips, prompts, labels)
    alone = [(clips @ prompts[:, p].T).argmax(dim=1) for p in range(4)]
    assert each.mean(axis=0).tolist() == pytest.approx([balanced_accuracy_score(labels, told) for told in alone])
    centres = np.array([np.mean(of_class, axis=0) for of_class in prompts.numpy()])
    told = (clips.numpy() @ (centres / np.linalg.norm(centres, axis=1, keepdims=True)).T).argmax(axis=1)
    assert ensemble.mean() == pytest.approx(balanced_accuracy_score(labels, told))


def test_a_prompt_counts_alike_however_long_its_vector_is():
    clips, prompts, _ = made()
    longer = prompts * torch.rand(5, 4, 1, generator=torch.Generator().manual_seed(1)).exp()
    assert torch.equal(zero_shot_predictions(clips, longer), zero_shot_predictions(clips, prompts))


def test_a_class_without_clips_can_be_mistaken_for_but_has_no_score():
    clips, prompts, labels = made()
    there = labels != 2
    ensemble, each = prompt_accuracies(clips[there], prompts, labels[there])
    whole, _ = prompt_accuracies(clips, prompts, labels)
    assert (ensemble.shape, each.shape) == ((4,), (4, 4))
    assert ensemble == pytest.approx(np.delete(whole, 2))


def test_means_over_classes_are_the_accuracies_and_their_standard_deviation():
    _, each = prompt_accuracies(*made())
    overall, found = each.mean(axis=0), spread(each)
    assert {name: values.mean() for name, values in found.items()} == pytest.approx(
        {
            "mean prompt": overall.mean(),
            "best prompt": overall.max(),
            "worst prompt": overall.min(),
            "spread of prompts": np.std(overall),
        }
    )


def test_the_spread_varies_over_classes_as_the_jackknife_says():
    rng = np.random.default_rng(0)
    each = np.clip(rng.normal(0.5, 0.2, (80, 6)) + 0.1 * np.arange(6), 0, 1)
    jackknife = pseudo_values(lambda kept: float(kept.mean(axis=0).std()), each)
    values = spread(each)["spread of prompts"]
    assert values.std() == pytest.approx(jackknife.std(), rel=0.02)
    assert difference([values]).half_width == pytest.approx(difference([jackknife]).half_width, rel=0.02)


def test_turning_the_space_and_the_order_of_clips_change_nothing():
    clips, prompts, labels = made()
    turn = torch.linalg.qr(torch.randn(6, 6, generator=torch.Generator().manual_seed(1)))[0]
    order = torch.randperm(60, generator=torch.Generator().manual_seed(2))
    before = prompt_accuracies(clips, prompts, labels)
    for after in (
        prompt_accuracies(clips @ turn, prompts @ turn, labels),
        prompt_accuracies(clips[order], prompts, labels[order]),
    ):
        assert all(np.allclose(a, b) for a, b in zip(after, before, strict=True))


@pytest.mark.parametrize(("name", "templates"), [("prompts", SOUNDS), ("picture-prompts", PICTURES)])
def test_an_experiment_asks_english_prompts_by_these_templates(name, templates):
    clips, named, labels = made(prompts=len(templates))
    asked = []

    def prompts(language, template=None):
        asked.append((language, template))
        return named[:, templates.index(template)]

    embedded = SimpleNamespace(languages=("deu",), singles=clips, labels=labels, prompts=prompts)
    found = METRICS[name].make(embedded)
    assert asked == [("eng", template) for template in templates]
    assert list(found) == [score.name for score in METRICS[name].scores]
    ensemble, each = prompt_accuracies(clips, named, labels)
    assert found["ensemble accuracy"] == pytest.approx(ensemble)
    assert found["mean prompt"].mean() == pytest.approx(each.mean())


def test_glap_asks_as_its_table_3_says_in_all_languages_that_have_labels():
    assert {kind: templates["eng"] for kind, templates in GLAP.items()} == {
        "speech": "{label}",
        "music": "The music in the style of {label}.",
        "sound": "The sound of {label} can be heard.",
    }
    for kind, templates in GLAP.items():
        named = {*LANGUAGES, *load_labels().names}
        assert set(templates) > named if kind == "speech" else set(templates) == named
        assert "wln" in GLAP["speech"], "words are spoken in more languages than anything is translated to"
        asked = {template.format(label="x") for template in templates.values()}
        assert len(asked) == (1 if kind == "speech" else len(templates))
        assert all(template.count("{label}") == 1 for template in templates.values())


@pytest.mark.parametrize("kind", GLAP)
def test_accuracy_in_each_language_is_that_of_its_own_prompts(kind):
    languages = list(GLAP[kind])
    clips, named, labels = made(prompts=len(languages))
    asked = {}

    def prompts(language, template=None):
        asked[language] = template
        if language == "kor":
            raise unknown("language of labels", language, languages)
        return named[:, languages.index(language)]

    embedded = SimpleNamespace(languages=("eng",), singles=clips, labels=labels, prompts=prompts)
    found = METRICS[f"{kind}-prompts"].make(embedded)
    assert asked == GLAP[kind]
    _, each = prompt_accuracies(clips, named, labels)
    expected = {f"accuracy {code}": each[:, row] for row, code in enumerate(languages) if code != "kor"}
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    listed = {score.name for score in METRICS[f"{kind}-prompts"].scores}
    assert listed - found.keys() == {"accuracy kor"}


def test_clips_that_cannot_be_asked_in_any_language_are_refused():
    def prompts(language, template=None):
        raise unknown("language of these words", language, ["glg"])

    embedded = SimpleNamespace(languages=("glg",), singles=None, labels=None, prompts=prompts)
    with pytest.raises(UnknownNameError, match="language of these words"):
        METRICS["speech-prompts"].make(embedded)
