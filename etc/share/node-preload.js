'use strict';
/*
 * Loaded by scalwsd before a Node application: its HTTP server's listen() on
 * PORT is redirected to the listener that scalwsd made and holds. Every other
 * listen() is left alone. SIGTERM drains, unless the application has a handler.
 *
 *	SCALWS_LISTEN         "fd:N:PATH", the inherited listener
 *	SCALWS_KEEPALIVE_MS   idle connections are kept at least so long
 *	SCALWS_GRACEFUL=0     do not touch SIGTERM
 */
(function () {
	const target = process.env.SCALWS_LISTEN;
	const keepAliveMs = Number(process.env.SCALWS_KEEPALIVE_MS) || 0;
	const port = process.env.PORT;
	const m = /^fd:(\d+)(?::(.*))?$/.exec(target || '');
	const { isMainThread } = require('worker_threads');

	if (!m || !isMainThread)
		return;

	const net = require('net');
	const http = require('http');
	const cluster = require('cluster');
	const originalListen = net.Server.prototype.listen;
	const fd = Number(m[1]);
	const name = m[2] || target;
	let main = null;

	/* Programs that the application starts do not have the descriptor; only
	 * workers of a cluster, whose listen() the primary does for them. */
	delete process.env.SCALWS_LISTEN;
	if (cluster.isPrimary) {
		const fork = cluster.fork;

		cluster.fork = function (env) {
			return fork.call(this,
			    Object.assign({ SCALWS_LISTEN: target }, env));
		};
		require('module').syncBuiltinESMExports();
	}

	function isHttp(server) {
		return typeof server.keepAliveTimeout === 'number' ||
		    server instanceof http.Server;
	}

	/* listen(port...) or listen({ port }) with the port we told it. */
	function isWanted(args) {
		let where = args[0];

		if (where && typeof where === 'object') {
			if (where.path || where.fd != null || where._handle)
				return false;
			where = where.port;
		}
		return port === undefined || String(where) === port;
	}

	function drain() {
		const closeIdle = () => main.closeIdleConnections &&
		    main.closeIdleConnections();

		if (process.listenerCount('SIGTERM') > 0)
			return; /* the application's own handler does it */
		main.close(() => process.exit(0));
		closeIdle();
		/* One whose last response ends now becomes idle later. */
		setInterval(closeIdle, 50);
	}

	net.Server.prototype.listen = function (...args) {
		const last = args[args.length - 1];
		const callback = typeof last === 'function' ? [last] : [];

		if (main || !isHttp(this) || !isWanted(args))
			return originalListen.apply(this, args);
		main = this;
		if (process.env.SCALWS_GRACEFUL !== '0')
			process.once('SIGTERM', drain);
		if (keepAliveMs > 0)
			this.keepAliveTimeout =
			    Math.max(this.keepAliveTimeout, keepAliveMs);
		/* null for an inherited unix listener, on which programs stumble. */
		const address = this.address;
		this.address = function () {
			return address.call(this) || name;
		};
		return originalListen.call(this, { fd, backlog: 4096 },
		    ...callback);
	};
})();
