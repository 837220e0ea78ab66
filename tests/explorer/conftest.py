"""The browser of these tests."""

import pytest

from tests.explorer.browser import CHROMIUM, Browser


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("there is no Chromium; install one, or set CHROMIUM to it")
    with Browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser
