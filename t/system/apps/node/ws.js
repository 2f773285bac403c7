'use strict';
// A WebSocket server: sends back what it gets. "pid" is answered with its
// process number, "close 4000 why" by closing so, "flood N" with N bytes in
// messages of 64 KiB. "/refuse" is refused.
const http = require('http');
const { WebSocketServer } = require('ws');

const server = http.createServer(require('./common').plain);
const sockets = new WebSocketServer({ noServer: true, maxPayload: 64 << 20 });

function take(socket, data, binary) {
  const word = binary ? [] : data.toString().split(' ');
  if (word[0] === 'pid') {
    socket.send(String(process.pid));
  } else if (word[0] === 'close') {
    socket.close(Number(word[1]), word[2]);
  } else if (word[0] === 'flood') {
    const piece = Buffer.alloc(65536);
    let left = Number(word[1]);
    (function more() {
      if (left <= 0 || socket.readyState !== 1) return;
      left -= piece.length;
      socket.send(piece, more);
    })();
  } else {
    socket.send(data, { binary });
  }
}

server.on('upgrade', (request, stream, head) => {
  if (request.url === '/refuse') {
    stream.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n' +
               'Connection: close\r\n\r\nno');
    return;
  }
  sockets.handleUpgrade(request, stream, head, (socket) => {
    socket.on('message', (data, binary) => take(socket, data, binary));
    socket.on('error', () => {});
  });
});
server.listen(process.env.PORT);
