"""The page to play with holds the data that its numbers follow from, and nothing breaks out of it."""

import html
import json
import re

import numpy as np
import pytest
import torch
from embeddings import sphere
from torch.nn import functional as F

from pullpush.forces import decompose, drift
from pullpush.show.interactive import force_lab, radius_lab
from pullpush.studies.svr.science import push_by_negative

N, TAU = 12, 0.1
TEXT, AUDIO = sphere(N, 6), sphere(N, 6, seed=1)
CAPTIONS = [f"caption {i}" for i in range(N)]


def page(lab=force_lab, captions=CAPTIONS, anchors=(3, 7)) -> str:
    """The document inside the frame."""
    shown = lab(TEXT, AUDIO, captions, [*anchors], tau=TAU).data
    (document,) = re.findall(r'<iframe srcdoc="([^"]*)"', shown)
    return html.unescape(document)


def data(document: str) -> dict:
    line = next(line for line in document.splitlines() if line.startswith("const data = "))
    return json.loads(line.removeprefix("const data = ").rstrip(";"))


def test_the_data_is_that_of_the_anchors(monkeypatch):
    monkeypatch.setattr("pullpush.show.interactive.NEGATIVES", 5)
    read = data(page())
    assert read["tau"] == TAU
    assert [anchor["caption"] for anchor in read["anchors"]] == ["caption 3", "caption 7"]
    first = read["anchors"][0]
    assert first["names"] == [f"caption {j}" for j in (0, 1, 2, 4, 5)]
    along = F.normalize(AUDIO[3] - TEXT[3], dim=0)
    np.testing.assert_allclose(first["position"], (AUDIO[[0, 1, 2, 4, 5]] - TEXT[3]) @ along, atol=1e-5)


@pytest.mark.parametrize("tau", [0.05, 0.1, 0.7])
def test_the_data_suffices_for_the_forces_at_every_temperature(tau):
    """The page's own formulas, written out again, against the library."""
    first = data(page())["anchors"][0]
    scores = np.exp(np.array([first["positive"], *first["similarity"]]) / tau)
    p = scores[1:] / scores.sum()
    gram, miss = np.array(first["gram"]), p.sum()
    across = np.sqrt(p @ gram[1:, 1:] @ p) / tau
    net = np.sqrt(max(gram[0, 0] * (miss / tau) ** 2 - 2 * miss * (gram[0, 1:] @ p) / tau**2 + across**2, 0))
    forces = decompose(TEXT[3:4], AUDIO, tau, positive=torch.tensor([3]))
    sideways = forces.gradient - (forces.gradient * forces.unit).sum(1, keepdim=True) * forces.unit
    assert across == pytest.approx(forces.perpendicular.norm().item(), rel=1e-3)
    assert p @ first["along"] / tau == pytest.approx((forces.push * forces.unit).sum().item(), abs=1e-3)
    assert net == pytest.approx(sideways.norm().item(), rel=1e-2, abs=1e-3)
    ahead = miss * first["positiveAlong"] / tau - p @ first["along"] / tau
    cosine = (miss / tau - p @ first["withPositive"] / tau) / np.hypot(ahead, net)
    assert cosine == pytest.approx(drift(forces.gradient, forces.pull).item(), abs=1e-3)


@pytest.mark.parametrize("evil", ["</script><script>alert(1)</script>", "<!--<script>", '" onload="x', "</SCRIPT >"])
def test_a_caption_cannot_break_out_of_the_page(evil):
    document = page(captions=[f"{evil} {i}" for i in range(N)])
    assert data(document)["anchors"][0]["caption"] == f"{evil} 3"
    script = document.split("<script>", 1)[1].rsplit("</script>", 1)[0]
    assert "</script" not in script.lower()
    assert "<!--" not in script
    assert document.count("<script") == 1


@pytest.mark.parametrize("radius", [-0.3, 0.0, 0.4, 1.2])
def test_the_radius_page_has_what_svrs_push_follows_from(radius):
    """The page's own formulas, written out again, against autograd."""
    (first,) = data(page(radius_lab, anchors=[3]))["anchors"]
    c = radius / first["distance"]
    similarity, partner = np.array(first["similarity"]), np.array(first["withPositive"])
    scores = np.exp(np.array([(1 - c) * first["positive"] + c, *((1 - c) * similarity + c * partner)]) / TAU)
    p = scores[1:] / scores.sum()
    push = push_by_negative(TEXT, AUDIO, radius, TAU)[3]
    along = F.normalize(AUDIO[3] - TEXT[3], dim=0)
    rows = [j for j in range(N) if j != 3]
    np.testing.assert_allclose(p * first["along"] / TAU, (push @ along)[rows], atol=1e-3)
    across = (push - (push @ along)[:, None] * along).norm(dim=1)[rows]
    np.testing.assert_allclose(abs(p * (1 - c)) * first["across"] / TAU, across, atol=1e-3)
