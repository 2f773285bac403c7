"""Fixtures, and what every test gets: no orphan, no sanitizer report."""
import os
import shutil
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
sys.dont_write_bytecode = True
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

import scalws  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "root: needs to be root")
    config.addinivalue_line("markers", "threads: also under ThreadSanitizer")
    config.addinivalue_line(
        "markers", "exact: counts or times; not under a sanitizer")
    config.addinivalue_line("markers", "xdist_group(name): one after another")
    scalws.become_subreaper()


def pytest_unconfigure(config):
    if not os.environ.get("SCALWS_KEEP"):
        for path in scalws.Daemon.directories:
            shutil.rmtree(path, ignore_errors=True)
    if scalws.apps_directory.cache_info().currsize:
        shutil.rmtree(scalws.apps_directory().parent, ignore_errors=True)


# Before pytest-xdist looks at the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        if "root" in item.keywords and not scalws.ROOT:
            item.add_marker(pytest.mark.skip(reason="not root"))
        # Tests that share a daemon go to the same process of pytest-xdist.
        served = getattr(item, "callspec", None)
        if served and "served" in served.params:
            item.add_marker(pytest.mark.xdist_group(
                served.params["served"].name))
        if "exact" in item.keywords and scalws.SLOW > 1:
            item.add_marker(pytest.mark.skip(reason="a sanitizer distorts it"))


@pytest.fixture
def daemon():
    """daemon(conf, ...) -> a running Daemon; stopped and checked at the end."""
    started = []

    def make(conf, start=True, **kwargs):
        one = scalws.Daemon(conf, **kwargs)
        started.append(one)
        if start:
            one.start()
        return one
    yield make
    failure = None
    for one in reversed(started):
        try:
            one.stop()
        except BaseException as error:
            failure = failure or error
        finally:
            one.keep_output()
            one.kill()
            if not os.environ.get("SCALWS_KEEP"):
                shutil.rmtree(one.dir, ignore_errors=True)
    if failure:
        raise failure


@pytest.fixture
def port():
    return scalws.free_port()


@pytest.fixture
def apps():
    return scalws.apps_directory()
