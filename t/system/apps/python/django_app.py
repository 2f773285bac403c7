"""Django in a single file."""
import os
import time

from django.conf import settings

settings.configure(
    ALLOWED_HOSTS=["localhost", ".example.com", "127.0.0.1"],
    DEBUG=False, ROOT_URLCONF=__name__, SECRET_KEY="only for tests",
    DATA_UPLOAD_MAX_MEMORY_SIZE=None, MIDDLEWARE=[])

from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.http import (  # noqa: E402
    HttpResponse, JsonResponse, StreamingHttpResponse)
from django.urls import path, re_path  # noqa: E402

from common import Sum, crash, echo, stream  # noqa: E402


def root(request):
    return HttpResponse("ok\n", content_type="text/plain")


def echo_it(request):
    body = Sum()
    while True:
        part = request.read(65536)
        if not part:
            break
        body.add(part)
    return JsonResponse(echo(
        request.method, request.path, request.META["QUERY_STRING"],
        request.headers.items(), body, client=request.META["REMOTE_ADDR"],
        scheme=request.scheme, host=request.get_host(),
        http_version=request.META["SERVER_PROTOCOL"].split("/")[1]))


def slow(request):
    time.sleep(float(request.GET.get("s", 1)))
    return HttpResponse("slow\n", content_type="text/plain")


def status(request, code):
    return HttpResponse(f"status {code}\n", status=int(code),
                        content_type="text/plain")


def cookies(request):
    answer = JsonResponse({"cookie": request.headers.get("Cookie", "")})
    answer.set_cookie("a", "1")
    answer.set_cookie("b", "2", httponly=True)
    return answer


def stream_it(request):
    def parts():
        for part in stream(int(request.GET.get("n", 5)),
                           int(request.GET.get("size", 10))):
            yield part
            time.sleep(0.01)
    return StreamingHttpResponse(parts(), content_type="text/plain")


def pid(request):
    return HttpResponse(str(os.getpid()), content_type="text/plain")


def end(request):
    crash()


def env(request):
    return JsonResponse(dict(os.environ))


urlpatterns = [
    path("", root), path("echo", echo_it), path("slow", slow),
    re_path(r"^status/(?P<code>\d+)$", status), path("cookies", cookies),
    path("stream", stream_it), path("pid", pid), path("crash", end),
    path("env", env),
]

app = get_wsgi_application()
