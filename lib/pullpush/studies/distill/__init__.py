"""Chapter 6: soft labels from teachers, captions in other words, and topics."""
