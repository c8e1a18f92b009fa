"""The browser of the tests ends with them."""

from tests.viz.devtools import end_browser


def pytest_sessionfinish():
    """Also after an interrupt."""
    end_browser()
