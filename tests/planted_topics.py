"""Captions of four planted topics, with embeddings that are near each other within a topic."""

import numpy as np

TOLD = {
    "dog": ("A dog barks {} near the gate", "The hound {} barks and growls"),
    "rain": ("Rain falls {} on the roof", "Drops of rain {} drip from a gutter"),
    "bell": ("A church bell rings {} slowly", "The bell {} tolls far away"),
    "engine": ("An engine {} starts and idles", "A motor hums {} at the kerb"),
}
WORDS = ("loudly", "softly", "twice", "again", "today", "outside", "quickly", "somewhere", "nearby", "faintly")
EACH = 30  # captions a topic


def planted(noise=0.02, seed=0):
    """Embeddings `(120, 16)`, captions and the true topic of each, shuffled; all captions differ."""
    rng = np.random.default_rng(seed)
    texts, classes = [], []
    for topic, forms in TOLD.items():
        for number in range(EACH):
            texts.append(forms[number % 2].format(f"{WORDS[number % 10]} {WORDS[number // 10 * 3]} {number:02d}"))
            classes.append(topic)
    centres = np.eye(len(TOLD), 16).repeat(EACH, axis=0)
    embeddings = (centres + rng.normal(0, noise, centres.shape)).astype(np.float32)
    rows = rng.permutation(len(texts))
    return embeddings[rows], [texts[row] for row in rows], np.array(classes)[rows]
