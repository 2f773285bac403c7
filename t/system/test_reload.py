"""What a reload says before and after, and what it cannot do."""
import scalws
from scalws import get

WORKER = {"runtime": "command", "http": False,
          "command": ["/bin/sh", "-c", "exec sleep 1000"]}


def two_apps(daemon, port, **keys):
    one = daemon({"sites": [{"names": ["a.example"],
                             "listen": [f"127.0.0.1:{port}"],
                             "routes": [{"path": "*",
                                         "respond": {"status": 200}}]}],
                  "apps": {"one": dict(WORKER), "two": dict(WORKER)}, **keys})
    one.wait_running("one")
    one.wait_running("two")
    return one


def test_dry_run_says_it_and_does_nothing(daemon, port):
    one = two_apps(daemon, port)
    assert one.ok("reload", "--dry-run") == "nothing changes\n"
    before = one.pids("one"), one.pids("two"), one.proxy_pid()
    conf = dict(one.conf)
    other = scalws.free_port()
    conf["apps"] = {"one": dict(conf["apps"]["one"], nice=1, stop_timeout="9s"),
                    "three": dict(conf["apps"]["two"])}
    conf["sites"] = [
        dict(conf["sites"][0], routes=[{"path": "*",
                                        "respond": {"status": 204}}]),
        {"names": ["b.example"], "listen": [f"127.0.0.1:{other}"],
         "routes": [{"path": "*", "respond": {"status": 200}}]}]
    conf["upstreams"] = {"u": {"peers": [{"address": "127.0.0.1:9"}]}}
    conf["limits"] = {"header_timeout": "14s"}
    conf["workers"] = 1
    old = one.conf
    one.write(conf)
    said = one.ok("reload", "--dry-run")
    assert set(said.splitlines()) == {
        "workers: takes effect when the daemon is restarted",
        f"listener 127.0.0.1:{other}: added",
        "site a.example: changed", "site b.example: added",
        "upstream u: added", "limits.header_timeout: changed",
        "app one: restart (stop_timeout, nice)",
        "app two: stop, it is removed", "app three: start"}
    assert (one.pids("one"), one.pids("two"), one.proxy_pid()) == before
    assert get(port, host="a.example").status == 200
    one.write(old)
    assert one.ok("reload", "--dry-run") == "nothing changes\n"


def test_dry_run_of_a_broken_file(daemon, port):
    one = two_apps(daemon, port)
    one.file.write_text(one.file.read_text() + "worksers = 1;\n")
    done = one.ctl("reload", "--dry-run")
    assert done.returncode == 1 and "scalws.conf:" in done.stderr
    assert "worksers" in done.stderr


def test_dry_run_of_what_is_taken_over_at_once(daemon, port):
    one = two_apps(daemon, port)
    before = one.pids("one")
    conf = dict(one.conf)
    conf["apps"]["one"]["stop_timeout"] = "9s"
    one.write(conf)
    assert one.ok("reload", "--dry-run") == \
        "app one: change without a restart (stop_timeout)\n"
    one.ok("reload")
    assert one.pids("one") == before


def test_removed_apps_are_named(daemon, port):
    one = two_apps(daemon, port)
    conf = dict(one.conf)
    conf["apps"] = {"one": conf["apps"]["one"]}
    one.write(conf)
    said = one.ok("reload")
    assert "app two removed" in said and "app one" not in said


def test_keys_that_need_a_restart(daemon, port):
    """Named as long as they differ from what runs, and no longer."""
    one = two_apps(daemon, port)
    old = dict(one.conf)
    new = dict(old, workers=1, error_log=str(one.dir / "other.log"),
               backlog=77, log_level="info")
    for _ in range(2):
        one.write(new)
        for said in (one.ok("reload", "--dry-run"), one.ok("reload")):
            for key in ("workers", "error_log", "backlog", "log_level"):
                assert f"{key}: takes effect when" in said
        one.write(old)
        for said in (one.ok("reload", "--dry-run"), one.ok("reload")):
            assert "takes effect" not in said
