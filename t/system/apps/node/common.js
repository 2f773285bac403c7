// What every Node test application answers; see ../README.md.
'use strict';
const crypto = require('crypto');

// Takes the body bit by bit: 10 MiB must not need 10 MiB.
function echo(req, extra, done) {
  const sum = crypto.createHash('sha256');
  let length = 0;
  req.on('data', (part) => { sum.update(part); length += part.length; });
  req.on('end', () => {
    const [path, query] = req.url.split(/\?(.*)/s);
    const headers = {};
    for (let i = 0; i < req.rawHeaders.length; i += 2) {
      const name = req.rawHeaders[i].toLowerCase();
      (headers[name] = headers[name] || []).push(req.rawHeaders[i + 1]);
    }
    done({
      method: req.method, path, query: query || '', headers,
      body_length: length, body_sha256: sum.digest('hex'),
      pid: process.pid, http_version: req.httpVersion, ...extra,
    });
  });
}

function sleep(seconds) {
  return new Promise((wake) => setTimeout(wake, seconds * 1000));
}

async function* stream(n, size) {
  for (let i = 0; i < n; i++) {
    yield Buffer.from(String(i % 10).repeat(size));
    await sleep(0.01);
  }
}

// The whole application on bare http: http.js and esm.mjs.
async function plain(req, res) {
  const url = new URL(req.url, 'http://x');
  const number = (name, preset) => Number(url.searchParams.get(name) ?? preset);
  const json = (value) => {
    const text = JSON.stringify(value);
    res.writeHead(200, { 'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(text) });
    res.end(text);
  };
  let m;
  if (url.pathname === '/') {
    res.end('ok\n');
  } else if (url.pathname === '/echo') {
    echo(req, { client: req.socket.remoteAddress ?? null }, json);
  } else if (url.pathname === '/pid') {
    res.end(String(process.pid));
  } else if (url.pathname === '/slow') {
    await sleep(number('s', 1));
    res.end('slow\n');
  } else if ((m = /^\/status\/(\d+)$/.exec(url.pathname))) {
    res.writeHead(Number(m[1]), { 'Content-Type': 'text/plain' });
    res.end(`status ${m[1]}\n`);
  } else if (url.pathname === '/cookies') {
    res.setHeader('Set-Cookie', ['a=1; Path=/', 'b=2; HttpOnly']);
    json({ cookie: req.headers.cookie ?? '' });
  } else if (url.pathname === '/stream') {
    for await (const part of stream(number('n', 5), number('size', 10)))
      res.write(part);
    res.end();
  } else if (url.pathname === '/crash') {
    process.kill(process.pid, 'SIGKILL');
  } else if (url.pathname === '/env') {
    json(process.env);
  } else {
    res.writeHead(404, { 'Content-Type': 'text/plain' });
    res.end('no such page\n');
  }
}

module.exports = { echo, sleep, stream, plain };
