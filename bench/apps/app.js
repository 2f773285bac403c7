'use strict';
/* The Node application of the bench: one small JSON answer. */
const http = require('http');
const body = '{"message":"Hello, World!"}';

http.createServer((request, response) => {
	response.writeHead(200, { 'Content-Type': 'application/json',
		'Content-Length': body.length });
	response.end(body);
}).listen(process.env.PORT);
