'use strict';
const { Readable } = require('stream');
const { echo, sleep, stream } = require('./common');
const express = require(process.env.EXPRESS || 'express4');
const app = express();

app.set('trust proxy', true);
app.get('/', (req, res) => res.send('ok\n'));
app.all('/echo', (req, res) => echo(req, { client: req.ip, scheme: req.protocol,
  host: req.hostname }, (value) => res.json(value)));
app.get('/pid', (req, res) => res.send(String(process.pid)));
app.get('/slow', async (req, res) => {
  await sleep(Number(req.query.s ?? 1));
  res.send('slow\n');
});
app.get('/status/:code', (req, res) => {
  res.status(Number(req.params.code)).type('text/plain')
    .send(`status ${req.params.code}\n`);
});
app.get('/cookies', (req, res) => {
  res.append('Set-Cookie', 'a=1; Path=/');
  res.append('Set-Cookie', 'b=2; HttpOnly');
  res.json({ cookie: req.headers.cookie ?? '' });
});
app.get('/stream', (req, res) => {
  Readable.from(stream(Number(req.query.n ?? 5), Number(req.query.size ?? 10)))
    .pipe(res);
});
app.get('/crash', () => process.kill(process.pid, 'SIGKILL'));
app.get('/env', (req, res) => res.json(process.env));
app.listen(process.env.PORT || 3000);
