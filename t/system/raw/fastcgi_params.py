"""FastCGI rows: what an application is told about a request."""
from dataclasses import dataclass

from raw.rows import HOST

ROOT = b"/srv/site"         # configured; need not exist here
VARIABLE = "RFC 3875 4.1"
FIELD = "RFC 3875 4.1.18"
PARAMS = "FCGI 3.4"
BODY = "RFC 3875 4.1.2"
PATH = "RFC 3875 4.1.5"
FORWARDS = "RFC 9110 7.6.2"


@dataclass(frozen=True)
class ParamRow:
    name: str
    rfc: str
    send: bytes
    want: dict                  # exact values; None: not there
    body: bytes = b""
    # Not empty: the proxy answers so itself, and the application hears
    # nothing.
    refused: frozenset = frozenset()
    # May also be answered so instead.
    or_refused: frozenset = frozenset()


def row(name, rfc, send, want=None, body=b"", refused=(), or_refused=()):
    return ParamRow(name, rfc, send, want or {}, body, frozenset(refused),
                    frozenset(or_refused))


def request(target=b"/i.php", fields=b"", method=b"GET", body=b"",
            version=b"HTTP/1.1"):
    if body:
        fields += b"Content-Length: %d\r\n" % len(body)
    return method + b" " + target + b" " + version + b"\r\n" + HOST + \
        fields + b"\r\n" + body


def chunked(*chunks):
    return request(method=b"POST",
                   fields=b"Transfer-Encoding: chunked\r\n")[:] + \
        b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in chunks) + \
        b"0\r\n\r\n"


def field(name, fields, want):
    return row(name, FIELD, request(fields=fields), want)


def long_field(size):
    return row(f"value-{size}-bytes", PARAMS,
               request(fields=b"X-L: " + b"v" * size + b"\r\n"),
               {b"HTTP_X_L": b"v" * size})


BASICS = [
    row("get", VARIABLE, request(), {
        b"REQUEST_METHOD": b"GET", b"QUERY_STRING": b"",
        b"REQUEST_URI": b"/i.php", b"SCRIPT_NAME": b"/i.php",
        b"SCRIPT_FILENAME": ROOT + b"/i.php", b"DOCUMENT_ROOT": ROOT,
        b"SERVER_PROTOCOL": b"HTTP/1.1", b"REQUEST_SCHEME": b"http",
        b"REMOTE_ADDR": b"127.0.0.1", b"SERVER_ADDR": b"127.0.0.1",
        b"SERVER_NAME": b"t.example", b"HTTP_HOST": b"t.example",
        b"HTTPS": None, b"PATH_INFO": None, b"PATH_TRANSLATED": None,
        b"CONTENT_TYPE": None, b"HTTP_PROXY": None}),
    row("head", VARIABLE, request(method=b"HEAD"),
        {b"REQUEST_METHOD": b"HEAD"}),
    row("method-unknown", VARIABLE, request(method=b"FROB"),
        {b"REQUEST_METHOD": b"FROB"}, or_refused=(405, 501)),
    row("http-1.0", VARIABLE, request(version=b"HTTP/1.0"),
        {b"SERVER_PROTOCOL": b"HTTP/1.0"}),
    row("query", "RFC 3875 4.1.7", request(b"/i.php?a=b&c=%20d?e"),
        {b"QUERY_STRING": b"a=b&c=%20d?e",
         b"REQUEST_URI": b"/i.php?a=b&c=%20d?e"}),
    row("query-empty", "RFC 3875 4.1.7", request(b"/i.php?"),
        {b"QUERY_STRING": b"", b"REQUEST_URI": b"/i.php?"}),
    row("uri-is-raw", VARIABLE, request(b"/%69.php?%41"),
        {b"REQUEST_URI": b"/%69.php?%41", b"SCRIPT_NAME": b"/i.php",
         b"QUERY_STRING": b"%41"}),
    row("absolute-form", "RFC 9112 3.2.2",
        request(b"http://other.example/i.php"),
        {b"HTTP_HOST": b"other.example", b"SCRIPT_NAME": b"/i.php"}),
    row("server-name-is-configured", "RFC 3875 4.1.14",
        b"GET /i.php HTTP/1.1\r\nHost: evil.example:99\r\n\r\n",
        {b"SERVER_NAME": b"t.example", b"HTTP_HOST": b"evil.example:99"}),
]

FRONT = {b"SCRIPT_NAME": b"/index.php", b"PATH_INFO": None,
         b"SCRIPT_FILENAME": ROOT + b"/index.php"}


def no_script(name, target):
    """Such a path is never handed over as a script: the front controller
    answers for it, or nobody."""
    return row("no-script-" + name, PATH, request(target),
               {**FRONT, b"REQUEST_URI": target},
               or_refused=(400, 403, 404))


PATHS = [
    row("path-info", PATH, request(b"/i.php/a/b"), {
        b"SCRIPT_NAME": b"/i.php", b"PATH_INFO": b"/a/b",
        b"SCRIPT_FILENAME": ROOT + b"/i.php",
        b"PATH_TRANSLATED": ROOT + b"/a/b"}),
    row("path-info-decoded", PATH, request(b"/i.php/a%20b"),
        {b"PATH_INFO": b"/a b", b"REQUEST_URI": b"/i.php/a%20b"}),
    row("path-info-slash", PATH, request(b"/i.php/"),
        {b"SCRIPT_NAME": b"/i.php", b"PATH_INFO": b"/"}),
    row("path-info-with-php", PATH, request(b"/i.php/x.php"),
        {b"SCRIPT_NAME": b"/i.php", b"PATH_INFO": b"/x.php"}),
    row("path-dots", "RFC 3986 5.2.4", request(b"/a/../i.php"),
        {b"SCRIPT_NAME": b"/i.php", b"SCRIPT_FILENAME": ROOT + b"/i.php"}),
    row("path-below", PATH, request(b"/a/b/i.php"),
        {b"SCRIPT_NAME": b"/a/b/i.php",
         b"SCRIPT_FILENAME": ROOT + b"/a/b/i.php"}),
    row("path-above-root", "RFC 3986 5.2.4", request(b"/../i.php"),
        refused=(400,)),
    row("path-above-root-encoded", "RFC 3986 5.2.4",
        request(b"/%2e%2e/i.php"), refused=(400,)),
    row("path-dots-with-encoded-slash", "RFC 3986 2.2",
        request(b"/..%2f..%2fetc/i.php"),
        {b"SCRIPT_FILENAME": ROOT + b"/..%2F..%2Fetc/i.php"},
        or_refused=(400, 404)),
    row("path-dots-in-path-info", "RFC 3986 5.2.4",
        request(b"/i.php/../../x.php"), refused=(400,)),
    row("path-info-dots-stay-inside", "RFC 3986 5.2.4",
        request(b"/i.php/a/../b"), {b"PATH_INFO": b"/b"}),
    row("path-nul", "RFC 3986 7.3", request(b"/i.php%00.jpg"),
        refused=(400, 404)),
    row("path-nul-in-path-info", "RFC 3986 7.3", request(b"/i.php/%00"),
        refused=(400, 404)),
    row("path-cr-lf", "RFC 3986 7.3", request(b"/i.php/%0d%0aX:y"),
        refused=(400, 404)),
    no_script("root", b"/"),
    no_script("text", b"/a.txt"),
    no_script("upload", b"/up/evil.jpg"),
    no_script("suffix-longer", b"/i.phps"),
    no_script("suffix-inside", b"/i.php.txt"),
    no_script("suffix-upper-case", b"/i.PHP"),
    no_script("suffix-and-space", b"/i.php%20"),
    no_script("suffix-and-dot", b"/i.php."),
    no_script("hidden", b"/.php"),
    no_script("hidden-below", b"/a/.php/b"),
    no_script("semicolon", b"/i.php;x/y"),
    no_script("encoded-slash", b"/i.php%2fx"),
    no_script("encoded-question", b"/i.php%3fx"),
    row("path-long", PATH, request(b"/i.php/" + b"p" * 3000),
        {b"PATH_INFO": b"/" + b"p" * 3000}),
    row("path-7000-bytes", PATH, request(b"/i.php/" + b"p" * 7000),
        {b"PATH_INFO": b"/" + b"p" * 7000}, or_refused=(404, 414, 431)),
]

FIELDS = [
    field("field", b"X-Some-Thing: y\r\n", {b"HTTP_X_SOME_THING": b"y"}),
    field("field-lower-case", b"x-lower: y\r\n", {b"HTTP_X_LOWER": b"y"}),
    field("field-empty", b"X-E:\r\n", {b"HTTP_X_E": b""}),
    field("field-trimmed", b"X-E: \t a b \r\n", {b"HTTP_X_E": b"a b"}),
    field("field-high-bytes", b"X-E: \xc3\xa9\xff\r\n",
          {b"HTTP_X_E": b"\xc3\xa9\xff"}),
    field("field-twice", b"X-T: a\r\nX-U: q\r\nx-t: b\r\n",
          {b"HTTP_X_T": b"a, b"}),
    field("field-cookie-twice", b"Cookie: a=1\r\nCookie: b=2\r\n",
          {b"HTTP_COOKIE": b"a=1; b=2"}),
    field("field-authorization", b"Authorization: Basic YTpi\r\n",
          {b"HTTP_AUTHORIZATION": b"Basic YTpi"}),
    field("field-proxy", b"Proxy: http://evil.example\r\n",
          {b"HTTP_PROXY": None}),
    field("field-underscore", b"X_Some: evil\r\nX-Some: good\r\n",
          {b"HTTP_X_SOME": b"good"}),
    field("field-underscore-alone", b"X_Some: evil\r\n",
          {b"HTTP_X_SOME": None}),
    field("field-dot", b"X.Some: evil\r\n",
          {b"HTTP_X_SOME": None, b"HTTP_X.SOME": None}),
    field("field-odd-token", b"X!: evil\r\n~: evil\r\n",
          {b"HTTP_X!": None, b"HTTP_~": None}),
    field("field-php-value", b"PHP-Value: auto_prepend_file=/etc/passwd\r\n"
          b"PHP_VALUE: a=b\r\nPHP_ADMIN_VALUE: a=b\r\n",
          {b"PHP_VALUE": None, b"PHP_ADMIN_VALUE": None}),
    field("field-named-as-variable", b"Script-Filename: /etc/passwd\r\n"
          b"Remote-Addr: 6.6.6.6\r\nHttps: on\r\n",
          {b"SCRIPT_FILENAME": ROOT + b"/i.php",
           b"REMOTE_ADDR": b"127.0.0.1", b"HTTPS": None}),
    field("field-hops", b"Connection: X-P\r\nX-P: 1\r\nTE: trailers\r\n"
          b"Upgrade: h2c\r\nKeep-Alive: 5\r\nProxy-Authorization: x\r\n",
          {b"HTTP_X_P": None, b"HTTP_TE": None, b"HTTP_UPGRADE": None,
           b"HTTP_KEEP_ALIVE": None, b"HTTP_PROXY_AUTHORIZATION": None,
           b"HTTP_TRANSFER_ENCODING": None}),
    row("options-max-forwards-5", FORWARDS,
        request(method=b"OPTIONS", fields=b"Max-Forwards: 5\r\n"),
        {b"HTTP_MAX_FORWARDS": b"4"}),
    row("options-max-forwards-0", FORWARDS,
        request(method=b"OPTIONS", fields=b"Max-Forwards: 0\r\n"),
        refused=(204,)),
    row("options-max-forwards-bad", FORWARDS,
        request(method=b"OPTIONS", fields=b"Max-Forwards: x\r\n"),
        {b"HTTP_MAX_FORWARDS": b"x"}, or_refused=(400,)),
    row("get-max-forwards-0", FORWARDS, request(fields=b"Max-Forwards: 0\r\n"),
        {b"HTTP_MAX_FORWARDS": b"0"}),
    field("field-forwarded-never-believed",
          b"X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\n"
          b"X-Real-IP: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\n",
          {b"REMOTE_ADDR": b"127.0.0.1", b"HTTPS": None,
           b"REQUEST_SCHEME": b"http", b"HTTP_FORWARDED": None}),
    row("field-bad", FIELD, request(fields=b"X : y\r\n"), refused=(400,)),
    row("field-nul", FIELD, request(fields=b"X: a\0b\r\n"), refused=(400,)),
    row("field-length-not-twice", FIELD,
        request(method=b"POST", body=b"hello"),
        {b"CONTENT_LENGTH": b"5", b"HTTP_CONTENT_LENGTH": None}, b"hello"),
    row("field-type", "RFC 3875 4.1.3",
        request(method=b"POST", fields=b"Content-Type: a/b; c=d\r\n",
                body=b"hello"),
        {b"CONTENT_TYPE": b"a/b; c=d", b"HTTP_CONTENT_TYPE": None},
        b"hello"),
]

LENGTHS = [
    long_field(126), long_field(127), long_field(128), long_field(129),
    long_field(255), long_field(256), long_field(4096), long_field(16384),
    long_field(30000),
    row("name-120-bytes", PARAMS, request(fields=b"n" * 122 + b": y\r\n"),
        {b"HTTP_" + b"N" * 122: b"y"}),
    row("name-123-bytes", PARAMS, request(fields=b"n" * 123 + b": y\r\n"),
        {b"HTTP_" + b"N" * 123: b"y"}),
    row("name-200-bytes", PARAMS, request(fields=b"n" * 200 + b": y\r\n"),
        {b"HTTP_" + b"N" * 200: b"y"}),
    row("name-and-value-long", PARAMS,
        request(fields=b"n" * 1000 + b": " + b"v" * 1000 + b"\r\n"),
        {b"HTTP_" + b"N" * 1000: b"v" * 1000}),
    row("many-fields", PARAMS, request(
        fields=b"".join(b"X-%d: %d\r\n" % (i, i) for i in range(90))),
        {b"HTTP_X_%d" % i: b"%d" % i for i in range(90)}),
    row("over-a-record", PARAMS, request(
        fields=b"".join(b"X-%d: %s\r\n" % (i, b"v" * 10000)
                        for i in range(7))),
        {b"HTTP_X_%d" % i: b"v" * 10000 for i in range(7)}),
    row("query-7000-bytes", PARAMS, request(b"/i.php?" + b"q" * 7000),
        {b"QUERY_STRING": b"q" * 7000}),
]

BODIES = [
    row("no-body", BODY, request(method=b"POST"), {}),
    row("body", BODY, request(method=b"POST", body=b"hello"),
        {b"CONTENT_LENGTH": b"5"}, b"hello"),
    row("body-with-get", BODY, request(body=b"hello"),
        {b"CONTENT_LENGTH": b"5"}, b"hello"),
    row("body-all-bytes", BODY, request(method=b"PUT", body=bytes(range(256))),
        {b"CONTENT_LENGTH": b"256"}, bytes(range(256))),
    row("body-65535", PARAMS, request(method=b"POST", body=b"b" * 65535),
        {b"CONTENT_LENGTH": b"65535"}, b"b" * 65535),
    row("body-65536", PARAMS, request(method=b"POST", body=b"b" * 65536),
        {b"CONTENT_LENGTH": b"65536"}, b"b" * 65536),
    row("body-900000", PARAMS, request(method=b"POST", body=b"b" * 900000),
        {b"CONTENT_LENGTH": b"900000"}, b"b" * 900000),
    row("body-chunked", BODY, chunked(b"hel", b"lo"),
        {b"CONTENT_LENGTH": b"5", b"HTTP_TRANSFER_ENCODING": None}, b"hello"),
    row("body-chunked-empty", BODY, chunked(), {}, b""),
    row("body-chunked-500000", BODY, chunked(*[b"c" * 50000] * 10),
        {b"CONTENT_LENGTH": b"500000"}, b"c" * 500000),
    row("body-chunked-wrong", "RFC 9112 7.1",
        request(method=b"POST", fields=b"Transfer-Encoding: chunked\r\n") +
        b"5\r\nhelloX", refused=(400,)),
    row("body-too-large", "RFC 9110 15.5.14",
        request(method=b"POST", fields=b"Content-Length: 1048577\r\n"),
        refused=(413,)),
    row("body-chunked-too-large", "RFC 9110 15.5.14",
        chunked(*[b"c" * 60000] * 20), refused=(413,)),
]

ROWS = BASICS + PATHS + FIELDS + LENGTHS + BODIES
