<?php
// What every PHP test application answers; see ../README.md.

function read_body(): array {
	$sum = hash_init('sha256');
	$length = 0;
	$in = fopen('php://input', 'rb');
	while (!feof($in)) {
		$part = fread($in, 65536);
		hash_update($sum, $part);
		$length += strlen($part);
	}
	return [$length, hash_final($sum)];
}

function request_fields(): array {
	$fields = [];
	foreach ($_SERVER as $name => $value) {
		if (str_starts_with($name, 'HTTP_'))
			$fields[strtolower(strtr(substr($name, 5), '_', '-'))] = [$value];
	}
	foreach (['CONTENT_TYPE', 'CONTENT_LENGTH'] as $name) {
		if (($_SERVER[$name] ?? '') !== '')
			$fields[strtolower(strtr($name, '_', '-'))] = [$_SERVER[$name]];
	}
	return $fields;
}

function send_json($value): void {
	header('Content-Type: application/json');
	echo json_encode($value);
}

// sleep() ends early when the master stops: work instead.
function work(float $seconds): void {
	for ($end = microtime(true) + $seconds; microtime(true) < $end;)
		usleep(1000);
}

function answer(string $path): void {
	if ($path === '/' || $path === '') {
		header('Content-Type: text/plain');
		echo "ok\n";
	} elseif ($path === '/echo') {
		[$length, $sum] = read_body();
		send_json([
			'method' => $_SERVER['REQUEST_METHOD'], 'path' => $path,
			'query' => $_SERVER['QUERY_STRING'],
			'headers' => request_fields(),
			'body_length' => $length, 'body_sha256' => $sum,
			'pid' => getmypid(),
			'client' => $_SERVER['REMOTE_ADDR'] ?? null,
			'scheme' => empty($_SERVER['HTTPS']) ? 'http' : 'https',
			'host' => $_SERVER['HTTP_HOST'] ?? null,
			'server' => array_filter($_SERVER, 'is_scalar'),
		]);
	} elseif ($path === '/slow') {
		work((float)($_GET['s'] ?? 1));
		header('Content-Type: text/plain');
		echo "slow\n";
	} elseif (preg_match('#^/status/(\d+)$#', $path, $m)) {
		http_response_code((int)$m[1]);
		header('Content-Type: text/plain');
		echo "status $m[1]\n";
	} elseif ($path === '/cookies') {
		setcookie('a', '1', 0, '/');
		setcookie('b', '2', 0, '', '', false, true);
		send_json(['cookie' => $_SERVER['HTTP_COOKIE'] ?? '']);
	} elseif ($path === '/stream') {
		header('Content-Type: text/plain');
		while (ob_get_level() > 0)
			ob_end_flush();
		for ($i = 0; $i < (int)($_GET['n'] ?? 5); $i++) {
			echo str_repeat((string)($i % 10), (int)($_GET['size'] ?? 10));
			flush();
			usleep(10000);
		}
	} elseif ($path === '/pid') {
		header('Content-Type: text/plain');
		echo getmypid();
	} elseif ($path === '/crash') {
		posix_kill(getmypid(), 9);
	} elseif ($path === '/env') {
		send_json(getenv());
	} else {
		http_response_code(404);
		header('Content-Type: text/plain');
		echo "no such page\n";
	}
}
