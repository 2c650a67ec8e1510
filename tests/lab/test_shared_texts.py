"""Captions that several clips share leave less to recall than 1, and the page says how much."""

import torch
from torch.nn import functional as F

from pullpush.lab import common
from pullpush.metrics import by_clip

TEXTS = [["a dog", "a bark"], ["a dog", "a dog"], ["a cat", "a cow"]]


def test_no_system_passes_the_ceilings_and_a_perfect_one_reaches_them():
    from_text, from_audio = common.ceilings(TEXTS)
    # A perfect model: each text lies at the sound of the clip that has it most often.
    place = {"a dog": 1, "a bark": 0, "a cat": 2, "a cow": 2}
    audio = torch.eye(3)
    text = F.normalize(torch.stack([torch.stack([audio[place[one]] for one in own]) for own in TEXTS]), dim=-1)
    found = by_clip(audio, text)
    assert float(found["T2A R@1"].mean()) == from_text == 5 / 6
    assert float(found["A2T R@1"].mean()) == from_audio == 2 / 3


def test_the_note_counts_clips_and_is_silent_where_captions_differ():
    class Told:
        name = "test"

        def __init__(self, captions):
            self.captions = lambda language: captions

    assert "**2 of the 3 test clips share" in common.shared_captions(Told(TEXTS)).data
    assert "83.3% from text to audio and 66.7% from audio to text" in common.shared_captions(Told(TEXTS)).data
    assert common.shared_captions(Told([["a"], ["b"]])).data == ""
    assert "There is one test clip:" in common.shared_captions(Told([["a"]])).data
