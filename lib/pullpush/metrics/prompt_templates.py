"""Sentences for zero-shot classification that name a class in "{label}", as their authors printed them."""

from __future__ import annotations

# On the Language Encoder of Contrastive Cross-modal Models, Table 10, in its order. It prints 22 lines, of which
# "A small sound of label." stands there twice.
SOUNDS = (
    "A sound of {label}.",
    "a sound of {label}.",
    "The sound of {label}.",
    "the sound of {label}.",
    "A constant sound of {label}.",
    "a constant sound of {label}.",
    "A big sound of {label}.",
    "a big sound of {label}.",
    "A small sound of {label}.",
    "A {label} is making a sound.",
    "a {label} is making a sound.",
    "An {label} is making a sound.",
    "an {label} is making a sound.",
    "A sound of {label} followed by a sound of {label}.",
    "A sound of {label} followed by {label}.",
    "A {label}.",
    "An {label}.",
    "{label}.",
    "{label} and {label}.",
    "A {label} is running.",
    "A {label} is happening.",
)

# Of OpenAI's 80 for ImageNet (openai/CLIP, notebooks/Prompt_Engineering_for_ImageNet.ipynb) those that end in "of a
# {}." and could be said of a stamp; the first two are quoted in §5.1 of the paper. A label brings its own article:
# "a bird", "food".
PICTURES = (
    "a photo of {label}.",
    "a blurry photo of {label}.",
    "a bad photo of {label}.",
    "a good photo of {label}.",
    "a close-up photo of {label}.",
    "a low resolution photo of {label}.",
    "a drawing of {label}.",
    "a painting of {label}.",
    "a sketch of {label}.",
    "a doodle of {label}.",
    "a rendering of {label}.",
    "art of {label}.",
    "itap of {label}.",
)
