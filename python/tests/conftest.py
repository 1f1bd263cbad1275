"""What holds for all tests."""

import signal

import pytest


@pytest.fixture(autouse=True)
def _control_c_is_heard():
    """A shell that starts the tests in the background has them ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
