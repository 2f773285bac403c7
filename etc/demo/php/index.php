<?php
// The PHP application of the demo, on php-fpm.
header('Content-Type: application/json');
echo json_encode([
	'message' => 'Hello from PHP ' . PHP_VERSION,
	'pid' => getmypid(),
	'script' => $_SERVER['SCRIPT_NAME'],
	'path' => $_SERVER['REQUEST_URI'],
	'you_are' => $_SERVER['REMOTE_ADDR'],
]);
