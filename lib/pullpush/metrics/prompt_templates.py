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

# The two that §5.1 of the paper quotes, and the seven that OpenAI found to do most of what its 80 for ImageNet do
# (openai/CLIP, notebooks/Prompt_Engineering_for_ImageNet.ipynb).
PICTURES = (
    "a photo of a {label}.",
    "a blurry photo of a {label}.",
    "itap of a {label}.",
    "a bad photo of the {label}.",
    "a origami {label}.",
    "a photo of the large {label}.",
    "a {label} in a video game.",
    "art of the {label}.",
    "a photo of the small {label}.",
)
