"""An encoder is one file: a toy of each kind is found, trained with a recipe, and read back from its checkpoint."""

import pytest
import torch
from toys import LOUDNESS, add  # noqa: F401 - a fixture

from pullpush.encoders import AUDIO, TEXT, create
from pullpush.errors import UnknownNameError
from pullpush.training import embed, recipe
from pullpush.training.checkpoints import load_model
from pullpush.training.runs import Plan

LETTERS = '''
"""Letters of a text."""

import torch
from torch import nn

from pullpush.encoders import TextEncoder, TextEncoderCard


class Letters(TextEncoder):
    dim = 6

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(128, self.dim)

    def forward(self, texts, languages=None):
        return torch.cat([self.table(torch.tensor([[ord(letter) % 128 for letter in text + " "]])) for text in texts])


CARD = TextEncoderCard(name="letters", make=Letters, title="Letters", about="Which letters it has.", licence="MIT")
'''


@pytest.fixture
def toys(add):  # noqa: F811
    return add("encoders/loudness.py", LOUDNESS), add("encoders/letters.py", LETTERS)


def test_an_encoder_is_found_by_the_name_on_its_card(toys):
    assert AUDIO["loudness"].title == "Loudness"
    assert list(TEXT)[-1] != "loudness"
    assert create("loudness", "letters", dim=8, audio_size=3).audio.dim == 3
    with pytest.raises(UnknownNameError, match="did you mean 'audio_size'"):
        create("loudness", "letters", audio_sise=3)


def test_both_train_end_to_end_and_come_back_from_the_checkpoint(toys, world):
    options = {"audio": "loudness", "text": "letters", "dim": 8, "epochs": 2, "batch_size": 8}
    plan = Plan(world, recipe("infonce", encoder_options={"audio_size": 5}, **options))
    new = create("loudness", "letters", dim=8, audio_size=5)
    before = new.audio.layer.weight.clone()
    run = plan.train()
    again = load_model(new, plan.path)
    assert not torch.equal(before, again.audio.layer.weight)
    torch.testing.assert_close(embed(run.model, world.test), embed(again, world.test), rtol=0, atol=0)


def test_the_key_of_a_run_names_what_its_encoders_do(toys, world, add):  # noqa: F811
    def key(audio):
        return Plan(world, recipe("infonce", audio=audio, text="hashed", dim=8)).key

    ours, cnn = key("loudness"), key("cnn")
    toys[0].unlink()
    again = add("encoders/loudness_again.py", LOUDNESS.replace("self.layer", "self.line").replace("Loudness(", "Loud("))
    again.write_text(again.read_text(encoding="utf-8").replace("make=Loudness", "make=Loud"), encoding="utf-8")
    assert key("loudness") == ours
    again.unlink()
    add("encoders/power.py", LOUDNESS.replace(".sqrt()", ""))
    assert key("loudness") != ours
    assert key("cnn") == cnn
