"""What a step costs."""

from pullpush.data.batches import PairDataset, collate
from pullpush.encoders import create
from pullpush.lab.overhead import overhead
from pullpush.training.recipes import recipe


def test_overhead_is_one_for_the_first_and_knows_of_more_weights(heard):
    items = PairDataset(heard.train)
    batch = collate([items[i] for i in range(8)])
    plans = {name: recipe(name, batch_size=8) for name in ("infonce", "infonce+bi-dynamic-svr")}
    model = create("features", "hashed", dim=8, audio_dim=heard.train.dim)
    table = overhead(plans, model, batch, rounds=2)
    assert table["system"].tolist() == list(plans)
    assert (table["seconds"] > 0).all()
    assert table["time"][0] == table["memory"][0] == 1
    assert table["memory"][1] > 1
