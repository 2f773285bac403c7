import { createServer } from 'node:http';
import common from './common.js';

console.log('esm application says hello');
const server = createServer(common.plain);
server.listen({ port: process.env.PORT, host: '127.0.0.1' }, () => {
  console.log('listening');
});
