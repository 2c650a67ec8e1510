"""The lab: sessions, experiments declared once, claims and their verdicts, and where results come from."""
