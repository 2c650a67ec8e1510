"""`python -m pullpush.studies.recordings` measures what is not trained on recordings of others, where they are."""

from pullpush.lab import session
from pullpush.studies.recordings import data, science

if __name__ == "__main__":
    science.write(data.Recordings(session.start("08-recordings-of-others")))
