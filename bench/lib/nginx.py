"""Debian's nginx, configured for a site."""
import os
import signal

from . import machine

STARTS_APPS = False
STOP_SIGNAL = signal.SIGQUIT    # ends when its connections have


def program():
    return machine.find("nginx")


def version():
    return machine.first_line(program(), "-v")


def can(scenario):
    return True


FIELDS = """
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $remote_addr;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_set_header X-Forwarded-Host $http_host;
            proxy_set_header X-Request-Id 0123456789abcdef0123456789abcdef;"""

# Debian's fastcgi_params with SCRIPT_FILENAME.
PARAMS = """
            fastcgi_param QUERY_STRING $query_string;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param CONTENT_TYPE $content_type;
            fastcgi_param CONTENT_LENGTH $content_length;
            fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
            fastcgi_param SCRIPT_NAME $fastcgi_script_name;
            fastcgi_param REQUEST_URI $request_uri;
            fastcgi_param DOCUMENT_URI $document_uri;
            fastcgi_param DOCUMENT_ROOT $document_root;
            fastcgi_param SERVER_PROTOCOL $server_protocol;
            fastcgi_param REQUEST_SCHEME $scheme;
            fastcgi_param HTTPS $https if_not_empty;
            fastcgi_param GATEWAY_INTERFACE CGI/1.1;
            fastcgi_param SERVER_SOFTWARE nginx;
            fastcgi_param REMOTE_ADDR $remote_addr;
            fastcgi_param REMOTE_PORT $remote_port;
            fastcgi_param SERVER_ADDR $server_addr;
            fastcgi_param SERVER_PORT $server_port;
            fastcgi_param SERVER_NAME $server_name;
            fastcgi_param REDIRECT_STATUS 200;"""


def upstream(running):
    keepalive = 64
    if running.site.action == "php" and not running.server.kept:
        keepalive = 0
    lines = ["least_conn;"] if len(running.peers) > 1 else []
    lines += [f"server {peer} max_fails=0;" for peer in running.peers]
    if keepalive:
        lines += [f"keepalive {keepalive};", "keepalive_requests 1000000000;"]
    return "upstream app {\n        " + "\n        ".join(lines) + "\n    }"


def location(running):
    site = running.site
    if site.action == "respond" and site.body:
        # Its configuration holds no such text.
        (running.directory / "body").write_bytes(b"x" * site.body)
        return (f"default_type text/plain; root {running.directory}; "
                "try_files /body =404; open_file_cache max=10; "
                "open_file_cache_valid 60s;")
    if site.action == "respond":
        return 'default_type text/plain; return 200 "ok\\n";'
    if site.action == "php":
        from .apps import APPS
        kept = "on" if running.server.kept else "off"
        return (f"root {APPS}; fastcgi_pass app; "
                f"fastcgi_keep_conn {kept};{PARAMS}")
    # Memory alone, as all others.
    unspooled = "proxy_max_temp_file_size 0; " if site.body else ""
    return f"{unspooled}proxy_pass http://app;{FIELDS}"


# In scalwsd's order; OpenSSL's own has 256 bits first.
CIPHERS = ("TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
           "TLS_CHACHA20_POLY1305_SHA256")


def tls(running):
    """Tickets are on by default, and so are records of 16 KiB."""
    return f"""
        ssl_certificate {running.tools}/cert.pem;
        ssl_certificate_key {running.tools}/key.pem;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_conf_command Ciphersuites {CIPHERS};
        ssl_ecdh_curve X25519:P-256:P-384;
        ssl_prefer_server_ciphers on;"""


def write(running):
    site, directory = running.site, running.directory
    log = "off"
    if running.server.access_log:
        log = f"{directory}/access.log combined"
    user = "user www-data;" if os.geteuid() == 0 else ""
    temporary = "\n    ".join(
        f"{kind}_temp_path {directory}/{kind};" for kind in
        ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    options = (" ssl" if site.tls else "") + (" http2" if site.http2 else "")
    conf = directory / "nginx.conf"
    conf.write_text(f"""{user}
daemon off;
pid {directory}/nginx.pid;
error_log {directory}/server.log error;
worker_processes {site.loops};
worker_rlimit_nofile {2 * site.connections + 64};
events {{ worker_connections {site.connections + 64}; }}
http {{
    {temporary}
    access_log {log};
    keepalive_timeout 75;
    keepalive_requests 1000000000;
    {upstream(running) if running.peers else ""}
    server {{
        listen 127.0.0.1:{running.port} backlog=4096{options};
        server_name www.example.com;{tls(running) if site.tls else ""}
        location / {{
            {location(running)}
        }}
    }}
}}
""")
    return running.wrapper + [program(), "-c", str(conf), "-p", str(directory),
                              "-e", str(directory / "server.log")], None


def reload(running):
    running.process.send_signal(signal.SIGHUP)
