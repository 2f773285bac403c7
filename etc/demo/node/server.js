// The Node application of the demo: plain http, nothing special for ScalWS.
'use strict';
const http = require('http');
const started = Date.now();
let answers = 0;

http.createServer((req, res) => {
  answers++;
  const body = JSON.stringify({
    message: `Hello from Node.js ${process.versions.node}`,
    pid: process.pid,
    answers,
    up_seconds: Math.round((Date.now() - started) / 1000),
    you_are: req.headers['x-forwarded-for'],
  });
  res.writeHead(200, { 'Content-Type': 'application/json' });
  res.end(body);
}).listen(process.env.PORT || 3000);
