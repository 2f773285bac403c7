// As python/record.py.
const fs = require('fs');
const http = require('http');

http.createServer((request, response) => {
	const parts = [];
	request.on('data', (part) => parts.push(part));
	request.on('end', () => {
		const body = Buffer.concat(parts);
		const row = request.headers['x-row'] || 'none';
		if (request.url === '/wait') {
			fs.appendFileSync(process.env.RECORD, `BEGUN ${row} 0\n`);
			response.on('close', () => fs.appendFileSync(
				process.env.RECORD, `GONE ${row} 0\n`));
			return;
		}
		fs.appendFileSync(process.env.RECORD,
			`${request.method} ${row} ${body.length}\n`);
		response.end(JSON.stringify({ method: request.method, row,
			body: body.toString('hex') }));
	});
}).listen(process.env.PORT || 3000);
