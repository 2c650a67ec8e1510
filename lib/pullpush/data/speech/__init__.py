"""People who speak: the captions of stamps; words, letters and prompts."""
