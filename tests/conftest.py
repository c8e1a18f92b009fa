"""All records are there before tests are made of them."""

import letir.ops  # noqa: F401
