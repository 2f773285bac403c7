'use strict';
// A WebSocket client as people have it: node wsclient.js URL WHAT. Prints what
// it saw as JSON; exits with 1 when something was wrong.
const WebSocket = require('ws');
const { randomBytes } = require('crypto');

const url = process.argv[2];
const what = process.argv[3];

function open(options) {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, options);
    socket.once('open', () => resolve(socket));
    socket.once('error', reject);
  });
}

function next(socket, event) {
  return new Promise((resolve, reject) => {
    socket.once(event, (...args) => resolve(args));
    socket.once('close', (code) => reject(new Error('closed: ' + code)));
  });
}

async function echo(socket, message) {
  const answer = next(socket, 'message');
  socket.send(message);
  const [data, binary] = await answer;
  if (!Buffer.from(message).equals(data) ||
      binary !== (typeof message !== 'string')) {
    throw new Error('another message came back');
  }
  return data.length;
}

function closed(socket) {
  return new Promise((resolve) => {
    socket.once('close', (code, why) => resolve([code, String(why)]));
  });
}

const work = {
  // Messages of all sizes of frames, pings, and who closes first.
  async all() {
    const seen = { sizes: [], pongs: 0 };
    for (const options of [{ perMessageDeflate: false }, {}]) {
      const socket = await open(options);
      seen.sizes.push(await echo(socket, 'text \u00e4\u20ac'));
      for (const size of [0, 1, 125, 126, 65535, 65536, 1 << 20, 1 << 20]) {
        seen.sizes.push(await echo(socket, randomBytes(size)));
      }
      const pong = next(socket, 'pong');
      socket.ping('are you there');
      if (String((await pong)[0]) === 'are you there') seen.pongs++;
      const end = closed(socket);
      socket.close(4321, 'enough');
      seen.mine = await end;
    }
    return seen;
  },
  async theirs() {
    const socket = await open();
    const end = closed(socket);
    socket.send('close 4000 bye');
    return { theirs: await end };
  },
  async refused() {
    return new Promise((resolve) => {
      const socket = new WebSocket(url);
      socket.on('error', () => {});
      socket.once('unexpected-response', (request, answer) => {
        answer.resume();
        answer.once('end', () => resolve({ status: answer.statusCode }));
      });
    });
  },
  // Many at once; says so when all are open, ends when its input does.
  async many() {
    const n = Number(process.argv[4]);
    const sockets = await Promise.all(Array.from({ length: n }, () => open()));
    for (let round = 0; round < 3; round++) {
      await Promise.all(sockets.map((s) => echo(s, randomBytes(10000))));
    }
    console.log(JSON.stringify({ open: n }));
    await new Promise((resolve) => process.stdin.resume().once('end', resolve));
    await Promise.all(sockets.map((s) => echo(s, 'still there')));
    const ends = sockets.map(closed);
    sockets.forEach((s) => s.close(1000));
    const codes = (await Promise.all(ends)).map(([code]) => code);
    return { clean: codes.filter((code) => code === 1000).length };
  },
};

work[what]().then((seen) => {
  console.log(JSON.stringify(seen));
  process.exit(0);
}, (error) => {
  console.error(error);
  process.exit(1);
});
