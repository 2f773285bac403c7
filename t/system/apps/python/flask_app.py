import os
import time

from flask import Flask, Response, jsonify, request, stream_with_context

from common import Sum, crash, echo, stream

app = Flask(__name__)


@app.route("/")
def root():
    return Response("ok\n", mimetype="text/plain")


@app.route("/echo", methods=["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH",
                             "OPTIONS"])
def echo_it():
    body = Sum()
    while True:
        part = request.stream.read(65536)
        if not part:
            break
        body.add(part)
    return jsonify(echo(
        request.method, request.path, request.query_string.decode(),
        request.headers.items(), body, client=request.remote_addr,
        scheme=request.scheme, host=request.host,
        http_version=request.environ["SERVER_PROTOCOL"].split("/")[1]))


@app.route("/slow")
def slow():
    time.sleep(float(request.args.get("s", 1)))
    return Response("slow\n", mimetype="text/plain")


@app.route("/status/<int:code>")
def status(code):
    return Response(f"status {code}\n", status=code, mimetype="text/plain")


@app.route("/cookies")
def cookies():
    answer = jsonify({"cookie": request.headers.get("Cookie", "")})
    answer.headers.add("Set-Cookie", "a=1; Path=/")
    answer.headers.add("Set-Cookie", "b=2; HttpOnly")
    return answer


@app.route("/stream")
def stream_it():
    def parts():
        for part in stream(int(request.args.get("n", 5)),
                           int(request.args.get("size", 10))):
            yield part
            time.sleep(0.01)
    return Response(stream_with_context(parts()), mimetype="text/plain")


@app.route("/pid")
def pid():
    return Response(str(os.getpid()), mimetype="text/plain")


@app.route("/crash")
def end():
    crash()


@app.route("/env")
def env():
    return jsonify(dict(os.environ))
