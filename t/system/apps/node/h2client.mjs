// Node's HTTP/2 client against the URL of page.py: h2client.mjs URL BYTES
// Says as JSON what it saw over one connection.
import crypto from "node:crypto";
import http2 from "node:http2";

const [url, bytes] = [process.argv[2], Number(process.argv[3])];
const streams = 4;
const seen = { pushes: 0, assets: 0, uploads: [], downloads: [] };
const session = http2.connect(url, { rejectUnauthorized: false });
session.on("stream", () => seen.pushes++);
session.on("error", fail);

function fail(error) {
	console.error(error);
	process.exit(1);
}

function ask(headers, body) {
	return new Promise((resolve, reject) => {
		const stream = session.request(headers, { endStream: !body });
		const sha = crypto.createHash("sha256");
		const answer = { size: 0, text: "" };
		stream.on("response", (h) => answer.status = h[":status"]);
		stream.on("data", (part) => {
			answer.size += part.length;
			sha.update(part);
			if (answer.text.length < 1000)
				answer.text += part.toString("latin1");
		});
		stream.on("error", reject);
		stream.on("end", () => {
			answer.sha256 = sha.digest("hex");
			resolve(answer);
		});
		if (body)
			body(stream);
	});
}

function upload(stream) {
	const piece = Buffer.alloc(65536, "upload");
	let left = bytes;
	function more() {
		while (left > 0) {
			const part = piece.subarray(0, Math.min(left,
			    piece.length));
			left -= part.length;
			if (!stream.write(part)) {
				stream.once("drain", more);
				return;
			}
		}
		stream.end();
	}
	more();
}

async function main() {
	const assets = [];
	for (let n = 0; n < 50; n++)
		assets.push(ask({ ":path": `/asset/${n}.js` }));
	for (const answer of await Promise.all(assets))
		seen.assets += answer.status === 200 && answer.size > 2000;
	const jobs = [];
	for (let n = 0; n < streams; n++) {
		jobs.push(ask({ ":path": "/upload", ":method": "POST" },
		    upload).then((a) => seen.uploads.push(a)));
		jobs.push(ask({ ":path": `/download/${bytes}` })
		    .then((a) => seen.downloads.push(a)));
	}
	await Promise.all(jobs);
	const head = await ask({ ":path": "/download/1000",
		":method": "GET" });
	seen.last = head.size;
	session.close();
	console.log(JSON.stringify(seen));
}

main().catch(fail);
