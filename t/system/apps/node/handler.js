'use strict';
// Ends itself at SIGTERM, as many applications do.
const http = require('http');
const server = http.createServer(require('./common').plain);
process.on('SIGTERM', () => server.close(() => process.exit(0)));
server.listen(process.env.PORT);
