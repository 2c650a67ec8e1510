"""A search in sounds: queries are texts, answers are clips to see and hear."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from IPython.display import display
from torch import Tensor

from pullpush.data.clips import Clips
from pullpush.data.languages import language
from pullpush.encoders.dual import DualEncoder
from pullpush.show.galleries import card, in_grid, waveform
from pullpush.show.markup import Markup, brief, safe


def retrieve(
    model: DualEncoder, clips: Clips, audio: Tensor, queries: Mapping[str, str], *, top: int = 3, live: bool = False
) -> Any:
    """The `top` clips for each query, most similar first.

    Args:
        model: encodes the queries.
        clips: what is searched.
        audio: `(N, d)` L2-normalised embeddings of the clips, from `model`.
        queries: language code → query.
        top: answers a query.
        live: show a search box, which needs a running kernel, instead of the fixed answers.
    """
    device = next(model.parameters()).device
    captions = clips.captions("eng")

    def answer(query: str) -> Markup:
        with torch.no_grad():
            similarity = (model.encode_text([query]).to(device) @ audio.to(device).T)[0]
        best = similarity.topk(min(top, len(similarity))).indices.tolist()
        texts = [
            f"{rank}. {brief(captions[row][0])} (cosine {similarity[row]:.2f})"
            for rank, row in enumerate(best, start=1)
        ]
        return in_grid([card(waveform(clips, row), text, "eng") for row, text in zip(best, texts, strict=True)])

    if live:
        return search_box(answer, examples=list(queries.values()))
    answers = {code: answer(query) for code, query in queries.items()}
    blocks = [
        f'<h4 style="margin-bottom:0.2em;overflow-wrap:anywhere">'
        f'<span lang="{language(code).html}">{safe(query)}</span> '
        f'<small style="font-weight:normal;opacity:0.7">{language(code).native}</small></h4>{answers[code].data}'
        for code, query in queries.items()
    ]
    return Markup("".join(blocks), "\n".join(f"{query}\n{answers[code].text}" for code, query in queries.items()))


def search_box(answer: Callable[[str], Any], *, examples: Sequence[str]) -> Any:
    """A text box that shows `answer(query)`, or what went wrong, on enter or a click on an example."""
    import ipywidgets as widgets  # only readers in JupyterLab need it

    box = widgets.Text(placeholder="a sound, in any language", continuous_update=False, layout={"width": "40em"})
    output = widgets.Output()

    def respond(change: dict) -> None:
        output.clear_output(wait=True)
        with output:
            try:
                display(answer(change["new"].strip()))
            except Exception as error:  # a reader's query must not end in a traceback
                print(f"{type(error).__name__}: {error}")

    box.observe(respond, names="value")
    buttons = []
    for example in examples:
        button = widgets.Button(description=example, layout={"width": "auto"})
        button.on_click(lambda _, example=example: setattr(box, "value", example))
        buttons.append(button)
    return widgets.VBox([box, widgets.HBox(buttons, layout={"flex_flow": "row wrap"}), output])
