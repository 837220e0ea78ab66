"""The browser of these tests."""

import pytest

from tests.explorer.browser import CHROMIUM, Browser


@pytest.fixture(scope="package")
def browser(tmp_path_factory):
    """Closed after these tests: the last page would go on playing, and take a core from those that follow."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium; install one, or set CHROMIUM to it")
    with Browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser
