// As python/record.py.
const fs = require('fs');
const http = require('http');

http.createServer((request, response) => {
	const parts = [];
	request.on('data', (part) => parts.push(part));
	request.on('end', () => {
		const body = Buffer.concat(parts);
		const row = request.headers['x-row'] || 'none';
		fs.appendFileSync(process.env.RECORD,
			`${request.method} ${row} ${body.length}\n`);
		response.end(JSON.stringify({ method: request.method, row,
			body: body.toString('hex') }));
	});
}).listen(process.env.PORT || 3000);
