"""Debian's haproxy, configured for a site."""
import os
import signal

from . import machine

STARTS_APPS = False
STOP_SIGNAL = signal.SIGUSR1    # ends when its connections have


def program():
    return machine.find("haproxy")


def version():
    return machine.first_line(program(), "-v")


def can(scenario):
    site = scenario.site
    return not site.http2 and not (site.action == "respond" and site.body)


def servers(running):
    lines = []
    for number, peer in enumerate(running.peers):
        address = peer.replace("unix:", "unix@")
        options = ""
        if running.site.action == "php":
            # It queues what the children cannot take.
            options = " proto fcgi maxconn 8"
        lines.append(f"    server app{number} {address}{options}")
    return "\n".join(lines)


def sections(running):
    """The part behind the defaults."""
    site = running.site
    tls = ""
    if site.tls:
        from .nginx import CIPHERS
        tls = f" ssl crt {running.tools}/both.pem ciphersuites {CIPHERS}"
    scheme = "https" if site.tls else "http"
    front = f"""
frontend front
    bind 127.0.0.1:{running.port} backlog 4096{tls}
"""
    if site.action == "respond":
        return front + ("    http-request return status 200 content-type "
                        'text/plain string "ok\\n"\n')
    front += f"""    http-request set-header X-Forwarded-For %[src]
    http-request set-header X-Forwarded-Proto {scheme}
    http-request set-header X-Forwarded-Host %[req.hdr(host)]
    http-request set-header X-Request-Id 0123456789abcdef0123456789abcdef
    default_backend back
backend back
    balance leastconn
    http-reuse always
"""
    if site.retry:
        # Not always: it copies every request's buffer.
        front += ("    option redispatch\n"
                  "    retry-on conn-failure empty-response\n")
    if site.action == "php":
        from .apps import APPS
        front += "    use-fcgi-app php\n"
        return front + servers(running) + f"""
fcgi-app php
    docroot {APPS}
    index index.php
    option keep-conn
"""
    return front + servers(running) + "\n"


def write(running):
    site, directory = running.site, running.directory
    user = ("user www-data\n    group www-data" if os.geteuid() == 0 else "")
    conf = directory / "haproxy.cfg"
    conf.write_text(f"""global
    {user}
    nbthread {site.loops}
    maxconn {site.connections + 64}
    no strict-limits
    stats socket {directory}/haproxy.sock mode 600 expose-fd listeners
defaults
    mode http
    option http-keep-alive
    timeout client 75s
    timeout http-keep-alive 75s
    timeout server 60s
    timeout connect 5s
    timeout queue 60s
{sections(running)}""")
    # A master process is needed for the reload only.
    return running.wrapper + [
        program(), "-db" if running.wrapper else "-W", "-f", str(conf)], None


def reload(running):
    running.process.send_signal(signal.SIGUSR2)
