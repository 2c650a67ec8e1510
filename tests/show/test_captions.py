"""Tests for numbered, captioned figures."""

import re

import matplotlib.pyplot as plt
import pytest

from pullpush.show import captions


@pytest.fixture
def drawn():
    fig, axes = plt.subplots()
    axes.plot([0, 1], [0, 1])
    yield fig
    plt.close(fig)


@pytest.fixture
def shown(monkeypatch):
    outputs = []
    monkeypatch.setattr(captions, "display", outputs.append)
    return outputs


def test_a_figure_is_shown_once_with_its_number_caption_anchor_and_alt_text(drawn, shown):
    captions.figure(drawn, "2.3", "Recall over the radius, 5 seeds.", alt="Two lines & a dot", paper="Figure 5")
    [output] = shown
    assert 'id="fig-2-3"' in output.data
    assert 'alt="Two lines &amp; a dot"' in output.data
    text = re.sub("<[^>]+>", "", output.data)
    assert text == "Figure 2.3 (paper: Figure 5). Recall over the radius, 5 seeds." == repr(output)
    assert not plt.fignum_exists(drawn.number)  # else the notebook would show it a second time


def test_mathematics_in_a_caption_is_left_to_mathjax(drawn, shown):
    captions.figure(drawn, "1L.1", r"The share of $\lVert F_\perp\rVert^2$, a < b.", alt="bars")
    assert r'<span class="math notranslate">\(\lVert F_\perp\rVert^2\)</span>, a &lt; b.' in shown[0].data
    assert "paper:" not in shown[0].data


@pytest.mark.parametrize("number", ["", "2", "2.0", "2.3a", "L.1", "2l.1", "fig-2-3"])
def test_a_number_of_another_form_is_refused(drawn, number):
    with pytest.raises(ValueError, match=r'"2\.3" in lesson 2'):
        captions.figure(drawn, number, "A line.", alt="a line")
    assert plt.fignum_exists(drawn.number)


@pytest.mark.parametrize(("caption", "alt"), [("", "a line"), ("A line.", " ")])
def test_a_figure_without_words_is_refused(drawn, caption, alt):
    with pytest.raises(ValueError, match="needs a caption and an alt text"):
        captions.figure(drawn, "2.3", caption, alt=alt)
