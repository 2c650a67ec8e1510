"""Recordings and pictures on disk: how they are fetched, listed, captioned, compared."""
