"""Published datasets, one file a source: how its files are read, and how they are fetched.

A file adds a dataset by a card, `CARD = DatasetCard(name=…, make=read, …)`, whose `make` is a function
`(place, split) -> Listing`; `data.recordings.registry.SETS` finds it by its name. A reader's own files lie in
`$PULLPUSH_EXTRA/sets/`. A clip has captions or one label: FSD50K, whose clips have several, is not among them.
"""
