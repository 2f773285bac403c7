"""scalwsd -t and -T: every mistake is one clear line, never a crash and never
half a start."""
import os
import re
import signal
import socket
import subprocess

import pytest

import scalws
from scalws import Daemon, check_file, get, wait_for

RESPOND = {"path": "*", "respond": {"status": 200, "body": "hi\n"}}


def site(port, *routes, **keys):
    return {"names": ["example.com"], "listen": [f"127.0.0.1:{port}"],
            "routes": list(routes) or [RESPOND], **keys}


def good(port, **keys):
    return {"sites": [site(port)], **keys}


def refused(conf, *words, user=None):
    """-t exits 1 and says all these words in one line with a place."""
    done = check_file(conf, user=user)
    assert done.returncode == 1, done
    lines = (done.stdout + done.stderr).splitlines()
    assert any(all(word in line for word in words) for line in lines), \
        f"no line with {words}:\n" + "\n".join(lines)
    return done


def test_good_file(port):
    done = check_file(good(port))
    assert done.returncode == 0, done


def test_shipped_example(tmp_path):
    """etc/scalws.conf is correct once its users and directories exist: only
    such things may be found wrong."""
    text = (scalws.TOP / "etc/scalws.conf").read_text()
    done = check_file(text)
    for line in (done.stdout + done.stderr).splitlines():
        assert re.search("no such user|unknown user|no such group|"
                         "unknown group|No such file|does not exist|"
                         "no user|no group|other error|findings", line), line


def test_effective_configuration(port):
    """-T prints every default, and what it prints is a configuration that
    means the same."""
    done = check_file(good(port), option="-T")
    assert done.returncode == 0, done
    assert f"127.0.0.1:{port}" in done.stdout
    for key in ("workers", "backlog", "log_level", "access_log_format"):
        assert re.search(rf"^\s*{key}\s*[=:]", done.stdout, re.M), key
    again = check_file(done.stdout, option="-T")
    assert again.returncode == 0, again
    assert again.stdout == done.stdout


def test_missing_file():
    done = subprocess.run([scalws.scalwsd(), "-t", "-c", "/nonexistent/x.conf"],
                          capture_output=True, text=True)
    assert done.returncode == 1
    assert "/nonexistent/x.conf" in done.stderr
    assert "No such file" in done.stderr


def test_unknown_key_names_the_nearest(port):
    conf = good(port)
    conf["sites"][0]["rotues"] = conf["sites"][0].pop("routes")
    refused(conf, "scalws.conf:", "rotues", "routes")


def test_unknown_key_in_app(port):
    refused(good(port, apps={"api": {"runtime": "command", "comand": ["x"]}}),
            "scalws.conf:", "apps.api", "comand", "command")


def test_line_number(port):
    text = scalws.conf_text(Daemon(good(port)).conf)
    bad = text + "workers_ = 3;\n"
    line = bad.count("\n")
    refused(bad, f"scalws.conf:{line}:", "workers_")


@pytest.mark.parametrize("value,words", [
    ('"5 parsecs"', ["5 parsecs"]), ('"-5s"', ["-5s"]), ("5.5", []),
    ('"99999999999999999999s"', []), ("true", []),
])
def test_bad_duration(port, value, words):
    text = scalws.conf_text(Daemon(good(port)).conf)
    refused(text + f"limits = {{ idle_timeout = {value}; }};\n",
            "scalws.conf:", "idle_timeout", *words)


def test_long_integer_is_refused(port):
    """libconfig 1.5 wraps it without a word."""
    text = scalws.conf_text(Daemon(good(port)).conf)
    refused(text + "backlog = 4294967297;\n", "scalws.conf:", "4294967297")


def test_open_comment_is_refused(port):
    text = scalws.conf_text(Daemon(good(port)).conf)
    line = text.count("\n") + 1
    refused(text + "/* what follows is gone\nworkers = 7;\n",
            f"scalws.conf:{line}", "comment")


def test_syntax_error(port):
    text = scalws.conf_text(Daemon(good(port)).conf)
    refused(text + "backlog = = 3;\n", "scalws.conf:", "syntax")


def test_include_of_a_directory(port):
    """libconfig 1.5 ends the process."""
    text = scalws.conf_text(Daemon(good(port)).conf)
    refused(text + '@include "/etc"\n', "scalws.conf:", "/etc")


def test_include_of_nothing(port):
    text = scalws.conf_text(Daemon(good(port)).conf)
    refused(text + '@include "/nonexistent/part.conf"\n',
            "scalws.conf:", "/nonexistent/part.conf")


def test_include(port, tmp_path):
    os.chmod(tmp_path, 0o755)
    part = tmp_path / "part.conf"
    part.write_text("workers = 3;\n")
    conf = scalws.conf_text({k: v for k, v in Daemon(good(port)).conf.items()
                             if k != "workers"})
    done = check_file(conf + f'@include "{part}"\n', option="-T")
    assert done.returncode == 0, done
    assert re.search(r"workers\s*[=:]\s*3", done.stdout)


def test_drop_ins(port, tmp_path):
    other = scalws.free_port()
    (tmp_path / "b.conf").write_text(scalws.conf_text(
        {"sites": [site(other)]}))
    (tmp_path / "not-read.txt").write_text("rubbish")
    done = check_file(good(port, include=f"{tmp_path}/*.conf"), option="-T")
    assert done.returncode == 0, done
    assert f"127.0.0.1:{other}" in done.stdout
    assert f"127.0.0.1:{port}" in done.stdout


def test_drop_in_twice_names_both_lines(port, tmp_path):
    app = 'apps = { one = { runtime = "command"; command = [ "/bin/true" ]; ' \
        'allow_root = true; http = false; }; };\n'
    (tmp_path / "a.conf").write_text(app)
    (tmp_path / "b.conf").write_text("\n" + app)
    done = refused(good(port, include=f"{tmp_path}/*.conf"), "one")
    assert "a.conf:1" in done.stdout + done.stderr
    assert "b.conf:2" in done.stdout + done.stderr


def test_drop_in_holds_only_apps_upstreams_sites(port, tmp_path):
    (tmp_path / "a.conf").write_text("workers = 4;\n")
    refused(good(port, include=f"{tmp_path}/*.conf"), "a.conf:1", "workers")


def test_unknown_user(port):
    refused(good(port, user="no-such-user"), "scalws.conf:", "no-such-user")


@pytest.mark.root
def test_unknown_user_of_an_app(port):
    refused(good(port, apps={"api": {
        "runtime": "command", "command": ["/bin/true"], "http": False,
        "user": "no-such-user"}}), "scalws.conf:", "apps.api",
        "no-such-user")


@pytest.mark.root
@pytest.mark.parametrize("user", [None, "root", scalws.PROXY_USER])
def test_app_user(port, user):
    """As root: an app names a user, not root, and not the proxy's."""
    text = scalws.conf_text({
        **Daemon(good(port)).conf,
        "apps": {"api": {"runtime": "command", "command": ["/bin/true"],
                         "http": False, "user": user}}})
    refused(text, "scalws.conf:", "apps.api", "user")


def test_tls_without_a_certificate(port):
    refused({"sites": [{"names": ["example.com"],
                        "listen": [f"127.0.0.1:{port} tls"],
                        "routes": [RESPOND]}]},
            "scalws.conf:", "sites[0].listen", "no tls.certificate")


def test_host_name_as_peer(port):
    refused(good(port, upstreams={"legacy": {"peers": [
        {"address": "backend.example.com:80"}]}}),
        "scalws.conf:", "upstreams.legacy", "backend.example.com")


def test_route_to_an_unknown_app(port):
    refused({"sites": [site(port, {"path": "*", "app": "shpo"})],
             "apps": {"shop": {"runtime": "command", "command": ["/bin/true"],
                               "user": scalws.APP_USER}}},
            "scalws.conf:", "shpo", "shop")


def test_route_with_two_actions(port):
    refused({"sites": [site(port, {
        "path": "*", "respond": {"status": 200},
        "redirect": {"status": 301, "location": "/"}})]}, "scalws.conf:")


def test_missing_directory(port):
    """One broken app keeps no site from being served: only a warning."""
    done = check_file(good(port, apps={"api": {
        "runtime": "python", "directory": "/nonexistent/dir",
        "module": "main:app", "user": scalws.APP_USER}}))
    assert done.returncode == 0, done
    lines = (done.stdout + done.stderr).splitlines()
    assert any(all(word in line for word in
                   ("scalws.conf:", "apps.api", "/nonexistent/dir"))
               for line in lines), lines


def test_files_that_a_start_would_refuse(port, tmp_path):
    """-t says it, with the line; a FIFO holds nobody."""
    file, fifo = tmp_path / "file", tmp_path / "fifo"
    file.write_text("")
    os.mkfifo(fifo)
    (tmp_path / "link").symlink_to(file)
    for keys, words in (
            ({"run_directory": f"{file}/run", "error_log": "/nonexistent/e",
              "access_log": f"{tmp_path}/link"},
             ("run_directory: .*Not a dir", "error_log: .*No such",
              "access_log: .* is a symbolic link")),
            ({"run_directory": str(file), "log_directory": str(file),
              "error_log": str(tmp_path)},
             ("run_directory: .*Not a dir", "log_directory: .*Not a dir",
              "error_log: .*is a directory"))):
        done = check_file(good(port, **keys))
        assert done.returncode == 1, done
        for word in words:
            assert re.search(rf"scalws.conf:\d+: {word}", done.stderr), done
    logs = tmp_path / "a/b"
    done = check_file(good(port, error_log=str(fifo), log_directory=str(logs),
                           access_log=f"{logs}/access.log"))
    assert done.returncode == 0, done
    assert "error_log: " in done.stderr and "a/b" not in done.stderr, done


def test_files_that_an_app_would_fail_by(daemon, port, tmp_path):
    """-t, check and a dry reload warn, and serve all the same."""
    fifo, torn = tmp_path / "fifo", tmp_path / "env"
    os.mkfifo(fifo)
    torn.write_text("A=1\nrubbish\n")
    one = daemon(good(port))
    one.write(good(port, apps={name: {
        "runtime": "command", "command": ["/bin/true"], "http": False,
        "log": {"file": str(log)}, "environment_file": str(env)}
        for name, log, env in (("a", tmp_path, "/nonexistent"),
                               ("b", fifo, fifo),
                               ("c", "/nonexistent/log", torn))}))
    test = subprocess.run([scalws.scalwsd(), "-t", "-c", one.file], text=True,
                          env=one.environment(leaks=False), timeout=60,
                          capture_output=True)
    for done in (test, one.ctl("check"), one.ctl("reload", "--dry-run")):
        assert done.returncode == 0, done
        for word in ("a.log.file: .*: is no regular file",
                     "a.environment_file: /nonexistent: No such file",
                     "b.log.file: .*: is no regular file",
                     "b.environment_file: ",
                     "c.log.file: /nonexistent/log: No such file",
                     "c.environment_file: .*: line 2: no NAME=value"):
            assert re.search(rf"scalws.conf:\d+: warning: apps.{word}",
                             done.stdout + done.stderr), (word, done)


def test_many_mistakes_at_once(port):
    """All are told, not the first."""
    conf = good(port, user="no-such-user")
    conf["upstreams"] = {"u": {"peers": [{"address": "host.name:1"}]}}
    done = refused(conf, "no-such-user")
    assert "host.name" in done.stdout + done.stderr


@pytest.mark.parametrize("what", ["listening", "scalwsd"])
def test_port_in_use(port, what):
    """SO_REUSEPORT must not hide another daemon."""
    first = None
    if what == "scalwsd":
        first = Daemon(good(port)).start()
        holder = None
    else:
        holder = socket.create_server(("127.0.0.1", port))
    second = Daemon(good(port))
    try:
        second.start(ready=False)
        assert second.wait(15) == 1
        assert re.search(rf"127\.0\.0\.1:{port}.*Address already in use",
                         second.log()), second.log()
        second.assert_nothing_left()
        if first:
            assert get(port, host="example.com").status == 200
    finally:
        second.kill()
        if first:
            try:
                first.stop()
            finally:
                first.kill()
        if holder:
            holder.close()


def test_same_run_directory_twice(daemon, port):
    """The lock file: a second daemon says so and touches nothing."""
    first = daemon(good(port))
    second = Daemon(good(scalws.free_port(), run_directory=str(first.run)))
    second.start(ready=False)
    assert second.wait(15) == 1
    assert str(first.run) in second.log()
    second.assert_nothing_left()
    first.ok("status")
    assert get(port, host="example.com").status == 200


def test_bad_file_does_not_start(port):
    one = Daemon(good(port, user="no-such-user"))
    one.start(ready=False)
    assert one.wait(10) == 1
    assert "no-such-user" in one.log()
    one.assert_nothing_left()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), 1)


@pytest.mark.parametrize("text", [
    "", ";", "{", "sites", "sites = ", "sites = 3;", "sites = ( 3 );",
    "sites = { };", "apps = ( );", "apps = { a = 1; };", "a.b = 1;",
    'sites = ( { listen = [ "99999" ]; routes = ( ); } );',
    'sites = ( { listen = [ "" ]; } );', 'sites = ( { names = [ "" ]; } );',
    "x" * 100000, "(" * 5000, "sites = " + "( " * 5000, "\0", "\xff" * 50,
    'user = "' + "u" * 70000 + '";', '@include "' + "i" * 5000 + '"\n',
], ids=lambda text: ascii(text[:20]))
def test_rubbish_is_refused_not_crashed_on(text):
    one = Daemon("")
    one.file.write_bytes(text.encode("latin-1"))
    done = subprocess.run(
        [scalws.scalwsd(), "-t", "-c", str(one.file)], env=one.environment(),
        capture_output=True, timeout=30 * scalws.SLOW)
    assert done.returncode == 1, done
    assert done.stderr or done.stdout
    one.assert_no_reports()


def test_usage():
    done = subprocess.run([scalws.scalwsd(), "--no-such-option"],
                          capture_output=True, text=True)
    assert done.returncode == 2 or done.returncode == 1
    assert "usage" in done.stderr.lower()


def test_manual_is_made_from_the_schema():
    """The options part of scalws.conf(5) is what the program prints."""
    made = subprocess.run([scalws.scalwsd(), "--print-schema-man"],
                          capture_output=True, text=True, check=True).stdout
    page = (scalws.TOP / "man/scalws.conf.5").read_text()
    assert made.strip(), "nothing printed"
    assert made in page, "run man/update: the schema has changed"


def test_address_without_ipv6(daemon, port):
    """A bare port means both families; get by each that the machine has."""
    one = daemon({"sites": [{"listen": [str(port)], "routes": [RESPOND]}]})
    assert get(("127.0.0.1", port)).status == 200
    try:
        probe = socket.socket(socket.AF_INET6)
        probe.bind(("::1", 0))
        probe.close()
    except OSError:
        assert re.search("IPv6", one.log())
    else:
        assert get(("::1", port)).status == 200


def test_unix_listener(daemon):
    directory = scalws.scratch()
    path = directory / "s"
    one = daemon({"sites": [{"listen": [f"unix:{path}"],
                             "routes": [RESPOND]}]})
    assert get(str(path)).body == b"hi\n"
    one.stop()
    assert not path.exists()


def test_ordinary_user(daemon, port):
    """Not root: everything runs as the caller."""
    user = scalws.OTHER_USER if scalws.ROOT else None
    one = daemon(good(port), user=user)
    assert get(port, host="example.com").body == b"hi\n"
    uid = os.stat(f"/proc/{one.process.pid}").st_uid
    for pid in one.tree():
        assert os.stat(f"/proc/{pid}").st_uid == uid


@pytest.mark.root
def test_identities(daemon, port, apps):
    """Supervisor root, proxy its user, apps theirs, groups included."""
    import pwd
    one = daemon({
        "sites": [site(port, {"path": "*", "app": "m"})],
        "apps": {"m": {"runtime": "command",
                       "command": [str(apps / "command/misbehave.py")],
                       "directory": "/tmp"}}})
    one.wait_running("m")
    limits = get(port, "/limits", host="example.com").json()
    user = pwd.getpwnam(scalws.APP_USER)
    assert limits["uid"] == [user.pw_uid] * 3
    assert limits["gid"] == [user.pw_gid] * 3
    assert limits["groups"] in ([], [user.pw_gid])
    status = open(f"/proc/{one.proxy_pid()}/status").read()
    proxy = pwd.getpwnam(scalws.PROXY_USER)
    assert re.search(rf"^Uid:(\s+{proxy.pw_uid}){{4}}$", status, re.M), status
    assert re.search(rf"^Gid:(\s+{proxy.pw_gid}){{4}}$", status, re.M), status
    assert re.search(r"^CapEff:\s+0+$", status, re.M), status
    mode = os.stat(one.run)
    assert mode.st_mode & 0o777 == 0o750
    for path in one.run.rglob("*"):
        if path.is_socket() and path != one.control:
            assert path.stat().st_mode & 0o007 == 0, path


def test_clean_surroundings(daemon, port, apps):
    """Working directory, process group, environment, descriptors, signals,
    limits, umask: what the app gets is what is configured."""
    one = daemon({
        "sites": [site(port, {"path": "*", "app": "m"})],
        "apps": {"m": {"runtime": "command", "directory": str(apps / "command"),
                       "command": [str(apps / "command/misbehave.py")],
                       "umask": "0027", "nice": 3,
                       "environment": {"FOO": "bar baz"},
                       "limits": {"nofile": 512, "core": 0}}}},
        env={"SECRET_OF_THE_DAEMON": "x", "NODE_OPTIONS": "--bad",
             "LISTEN_FDS": "1", "NOTIFY_SOCKET": None})
    one.wait_running("m")
    limits = get(port, "/limits", host="example.com").json()
    env = get(port, "/env", host="example.com").json()
    assert limits["cwd"] == str(apps / "command")
    assert limits["pgid"] == limits["pid"]
    assert limits["umask"] == 0o027
    assert limits["nice"] == 3
    assert limits["nofile"] == [512, 512]
    assert limits["core"] == [0, 0]
    assert limits["stdin"] == "/dev/null"
    assert int(limits["mask"], 16) == 0
    # Python itself ignores SIGPIPE and SIGXFSZ.
    assert int(limits["ignored"], 16) & ~(
        1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1) == 0
    assert env["FOO"] == "bar baz"
    assert "PATH" in env
    assert not {"SECRET_OF_THE_DAEMON", "NODE_OPTIONS"} & set(env)
    assert not any(name.startswith(("ASAN", "SCALWS_", "UBSAN", "TSAN"))
                   for name in env), env
    # 0-2, the listener if any, the client's connection, and listdir's own.
    assert len(limits["fds"]) <= 6, limits["fds"]


def test_descriptors_are_raised_for_us_and_given_back(daemon, port, apps):
    import resource
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    low = min(hard, 256)
    one = daemon({
        "sites": [site(port, {"path": "*", "app": "m"})],
        "limits": {"connections": 100},
        "apps": {"m": {"runtime": "command", "directory": "/tmp",
                       "command": [str(apps / "command/misbehave.py")]}}},
        command=["prlimit", f"--nofile={low}:{hard}"])
    one.wait_running("m")
    limits = open(f"/proc/{one.proxy_pid()}/limits").read()
    assert re.search(rf"Max open files\s+{hard}\s+{hard}", limits), limits
    assert get(port, "/limits", host="example.com").json()["nofile"] == \
        [low, hard]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_it(port, number):
    one = Daemon(good(port)).start()
    one.signal(number)
    assert one.wait(10) == 0
    one.assert_nothing_left()
    one.assert_no_reports()
    assert not one.control.exists()


def test_notify_socket(port):
    """READY=1 for systemd when the listeners are open; STOPPING=1 at the
    end."""
    one = Daemon(good(port))
    path = one.dir / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(path))
        os.chmod(path, 0o666)
        notify.settimeout(20 * scalws.SLOW)
        one.extra_env["NOTIFY_SOCKET"] = str(path)
        one.start(ready=False)
        try:
            said = ""
            while "READY=1" not in said:
                said += notify.recv(4096).decode() + "\n"
            assert get(port, host="example.com").status == 200
            one.signal(signal.SIGTERM)
            while "STOPPING=1" not in said:
                said += notify.recv(4096).decode() + "\n"
            one.stop()
        finally:
            one.kill()


def test_address_that_comes_later(port):
    """An address that is not there yet is retried, and said."""
    one = Daemon({"sites": [{"listen": [f"198.51.100.77:{port}"],
                             "routes": [RESPOND]}]})
    one.start(ready=False)
    try:
        wait_for(lambda: "198.51.100.77" in one.log(), 10)
        assert one.process.poll() is None
        one.stop()
    finally:
        one.kill()
