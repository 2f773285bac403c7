#!/usr/bin/python3
"""An application that does what applications should not do.

    misbehave.py [--socket PATH | --port N] [--stubborn] [--children]
                 [--flood LINES] [--die SECONDS] [--exit CODE] [--no-listen]

--stubborn   ignores SIGTERM and SIGINT
--children   leaves a child, a setsid child and a double-forked grandchild, all
             of which ignore SIGTERM
--flood      writes that many lines to stdout first
--die        ends by SIGSEGV after so many seconds
--exit       ends at once with that status, after two lines of output
"""
import argparse
import http.server
import json
import os
import signal
import socket
import sys
import threading
import time


def ignore():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def lurk():
    ignore()
    while True:
        time.sleep(60)


def leave_children():
    if os.fork() == 0:
        lurk()
    if os.fork() == 0:
        os.setsid()
        lurk()
    middle = os.fork()
    if middle == 0:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                lurk()
            os._exit(0)
        os._exit(0)
    os.waitpid(middle, 0)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path == "/crash":
            os.kill(os.getpid(), signal.SIGKILL)
        if path == "/hang":
            print("hangs", flush=True)
            time.sleep(3600)
        if path == "/slow":
            time.sleep(float(query.partition("=")[2] or 1))
        if path == "/env":
            body = json.dumps(dict(os.environ)).encode()
        elif path == "/limits":
            import resource
            body = json.dumps({
                "cwd": os.getcwd(), "uid": os.getresuid(),
                "gid": os.getresgid(), "groups": os.getgroups(),
                "pgid": os.getpgid(0), "pid": os.getpid(),
                "sid": os.getsid(0), "nice": os.nice(0),
                "umask": read_umask(),
                "nofile": resource.getrlimit(resource.RLIMIT_NOFILE),
                "core": resource.getrlimit(resource.RLIMIT_CORE),
                "stdin": os.readlink("/proc/self/fd/0"),
                "fds": sorted(int(fd) for fd in os.listdir("/proc/self/fd")),
                "mask": read_status("SigBlk"), "ignored": read_status("SigIgn"),
            }).encode()
        elif path == "/pid":
            body = str(os.getpid()).encode()
        else:
            body = b"ok\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "-"

    def log_message(self, *args):
        pass


def read_umask():
    was = os.umask(0)
    os.umask(was)
    return was


def read_status(key):
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(key + ":"):
                return line.split()[1]


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, listener):
        super().__init__(("", 0), Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_name, self.server_port = "localhost", 0

    def get_request(self):
        conn, _ = self.socket.accept()
        return conn, ("-", 0)


def listen(options):
    if os.environ.get("LISTEN_FDS") and \
            os.environ.get("LISTEN_PID") == str(os.getpid()):
        return socket.socket(fileno=3)
    if options.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(options.socket)
    else:
        port = options.port or int(os.environ["PORT"])
        listener = socket.create_server(("127.0.0.1", port))
    listener.listen(128)
    return listener


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket")
    parser.add_argument("--port", type=int)
    parser.add_argument("--stubborn", action="store_true")
    parser.add_argument("--children", action="store_true")
    parser.add_argument("--flood", type=int, default=0)
    parser.add_argument("--die", type=float)
    parser.add_argument("--exit", type=int)
    parser.add_argument("--no-listen", action="store_true")
    options = parser.parse_args()
    if options.exit is not None:
        print("first words on stdout", flush=True)
        print("last words on stderr", file=sys.stderr, flush=True)
        sys.exit(options.exit)
    if options.stubborn:
        ignore()
    if options.children:
        leave_children()
    for i in range(options.flood):
        print("flood line %d %s" % (i, "x" * 80))
    sys.stdout.flush()
    if options.die is not None:
        threading.Timer(options.die, os.kill,
                        (os.getpid(), signal.SIGSEGV)).start()
    if options.no_listen:
        while True:
            print("tick", flush=True)
            time.sleep(1)
    Server(listen(options)).serve_forever()


main()
