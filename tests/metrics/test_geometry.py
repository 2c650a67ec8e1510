"""Both spaces by clip: means are the published statistics, spreads those of the jackknife."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from embeddings import sphere

from pullpush.metrics import METRICS, alignment, pseudo_values, uniformity
from pullpush.metrics.geometry import space

unit = torch.nn.functional.normalize
D = 6


def pairs_of_points(n: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Clips that resemble their texts, in a cone of their own."""
    g = torch.Generator().manual_seed(seed)
    shared = torch.randn(n, D, generator=g)
    audio, text = (shared + 0.5 * torch.randn(n, D, generator=g) for _ in range(2))
    return unit(audio + 0.4, dim=1), unit(text, dim=1)


def off(matrix: np.ndarray) -> np.ndarray:
    """The pairs of different clips."""
    return matrix[~np.eye(len(matrix), dtype=bool)]


def uniform(x: np.ndarray) -> float:
    return np.log(off(np.exp(-2 * ((x[:, None] - x[None]) ** 2).sum(axis=-1))).mean())


def crossed(a: np.ndarray, t: np.ndarray) -> float:
    return off((a @ t.T - t @ a.T) ** 2).mean()


STATISTICS = {
    "alignment": lambda a, t: ((a - t) ** 2).sum(axis=1).mean(),
    "text uniformity": lambda a, t: uniform(t),
    "audio uniformity": lambda a, t: uniform(a),
    "text anisotropy": lambda a, t: off(t @ t.T).mean(),
    "audio anisotropy": lambda a, t: off(a @ a.T).mean(),
    "gap": lambda a, t: np.linalg.norm(a.mean(axis=0) - t.mean(axis=0)),
    "cross-cyclic": crossed,
    "in-modal cyclic": lambda a, t: off((a @ a.T - t @ t.T) ** 2).mean(),
    "asymmetry": lambda a, t: crossed(a, t) / off(a @ t.T).var(),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_the_mean_is_the_statistic_and_the_spread_is_the_jackknifes(name):
    audio, text = pairs_of_points(60)
    values = space(audio, text)[name].numpy()
    both = torch.stack([audio, text], dim=1).double().numpy()
    assert values.mean() == pytest.approx(STATISTICS[name](both[:, 0], both[:, 1]), abs=1e-12)
    jackknife = pseudo_values(lambda kept: STATISTICS[name](kept[:, 0], kept[:, 1]), both)
    assert np.corrcoef(values, jackknife)[0, 1] > 0.999
    assert values.std() == pytest.approx(jackknife.std(), rel=0.03)  # the first order of what is no mean


def test_asymmetry_is_one_less_the_correlation_with_the_transpose_and_knows_no_scale():
    audio, text = (side.double() for side in pairs_of_points(30))
    cosines = (audio @ text.T).numpy()
    r = np.corrcoef(off(cosines), off(cosines.T))[0, 1]
    assert space(audio, text)["asymmetry"].mean().item() == pytest.approx(2 * (1 - r))
    narrow = space(audio, 0.1 * text)
    assert narrow["asymmetry"].mean().item() == pytest.approx(2 * (1 - r))
    assert narrow["cross-cyclic"].mean().item() == pytest.approx(0.01 * crossed(audio.numpy(), text.numpy()))


def test_turning_the_space_changes_nothing_and_other_orders_change_only_the_order():
    audio, text = (side.double() for side in pairs_of_points(20))
    turn = torch.linalg.qr(torch.randn(D, D, generator=torch.Generator().manual_seed(1), dtype=torch.float64))[0]
    order = torch.randperm(20, generator=torch.Generator().manual_seed(2))
    before, turned, shuffled = space(audio, text), space(audio @ turn, text @ turn), space(audio[order], text[order])
    for name, values in before.items():
        assert torch.allclose(turned[name], values)
        assert torch.allclose(shuffled[name], values[order])


def test_one_caption_for_all_clips_and_two_clips_have_numbers():
    audio, text = pairs_of_points(5)
    flat = space(audio, text[:1].expand(5, D))
    assert flat["text uniformity"] == pytest.approx(np.zeros(5), abs=1e-6)
    assert flat["text anisotropy"] == pytest.approx(np.ones(5), abs=1e-6)
    collapsed = space(text[:1].expand(5, D), text[:1].expand(5, D))
    assert collapsed["asymmetry"].tolist() == [0] * 5
    for found in (flat, collapsed, space(audio[:2], text[:2])):
        assert all(torch.isfinite(values).all() for values in found.values())
    assert space(audio[:2], text[:2])["cross-cyclic"].unique().numel() == 1
    with pytest.raises(ValueError, match="two clips"):
        space(audio[:1], text[:1])


def test_an_experiment_gets_it_of_first_captions_in_the_first_language():
    audio, text = pairs_of_points(8)
    texts = {"eng": torch.stack([text, audio], dim=1), "fra": audio[:, None]}
    found = METRICS["space"].make(SimpleNamespace(languages=("eng", "fra"), audio=audio, texts=texts.get))
    assert found.keys() == {score.name for score in METRICS["space"].scores}
    assert found["alignment"] == pytest.approx(space(audio, text)["alignment"].numpy())


def test_geometry_equals_a_loop_over_pairs():
    audio, text = sphere(7, 5), sphere(7, 5, seed=1)
    assert alignment(audio, text).item() == pytest.approx(
        np.mean([float((a - t) @ (a - t)) for a, t in zip(audio, text, strict=True)])
    )
    pairs = [float((audio[i] - audio[j]).norm() ** 2) for i in range(7) for j in range(i)]
    assert uniformity(audio).item() == pytest.approx(np.log(np.mean(np.exp(-2 * np.array(pairs)))))


def test_collapse_is_perfectly_aligned_and_not_uniform():
    point = sphere(1, 5).expand(6, 5)
    assert alignment(point, point) == 0
    assert uniformity(point).item() == pytest.approx(0, abs=1e-9)
    with pytest.raises(ValueError, match="two"):
        uniformity(point[:1])
