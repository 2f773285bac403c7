'use strict';
const http = require('http');
http.createServer(require('./common').plain).listen(process.env.PORT);
