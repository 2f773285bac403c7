'use strict';
const { Readable } = require('stream');
const { echo, sleep, stream } = require('./common');
const app = require(process.env.FASTIFY || 'fastify4')({ trustProxy: true });

// Bodies are counted by echo(), not parsed.
app.removeAllContentTypeParsers();
app.addContentTypeParser('*', (req, payload, done) => done(null, payload));
app.get('/', async () => 'ok\n');
app.all('/echo', (req, reply) => {
  echo(req.raw, { client: req.ip, scheme: req.protocol, host: req.hostname },
    (value) => reply.send(value));
});
app.get('/pid', async () => String(process.pid));
app.get('/slow', async (req) => {
  await sleep(Number(req.query.s ?? 1));
  return 'slow\n';
});
app.get('/status/:code', async (req, reply) => {
  reply.code(Number(req.params.code)).type('text/plain');
  return `status ${req.params.code}\n`;
});
app.get('/cookies', async (req, reply) => {
  reply.header('Set-Cookie', ['a=1; Path=/', 'b=2; HttpOnly']);
  return { cookie: req.headers.cookie ?? '' };
});
app.get('/stream', (req, reply) => {
  reply.send(Readable.from(stream(Number(req.query.n ?? 5),
    Number(req.query.size ?? 10))));
});
app.get('/crash', () => process.kill(process.pid, 'SIGKILL'));
app.get('/env', async () => process.env);
app.listen({ port: Number(process.env.PORT || 3000), host: '127.0.0.1' })
  .catch((error) => { console.error(error); process.exit(1); });
