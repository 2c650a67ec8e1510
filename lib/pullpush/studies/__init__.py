"""Studies: the science of each chapter, a folder a chapter."""

from pullpush.extras import need

EXTRA = need("book", "pullpush.studies")
