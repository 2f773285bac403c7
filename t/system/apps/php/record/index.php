<?php
// As python/record.py.
$body = file_get_contents('php://input');
$method = $_SERVER['REQUEST_METHOD'];
$row = $_SERVER['HTTP_X_ROW'] ?? 'none';
if (strtok($_SERVER['REQUEST_URI'], '?') === '/wait') {
	file_put_contents(getenv('RECORD'), "BEGUN $row 0\n", FILE_APPEND);
	usleep(1500000);
}
file_put_contents(getenv('RECORD'), "$method $row " . strlen($body) . "\n",
    FILE_APPEND);
echo json_encode(['method' => $method, 'row' => $row,
    'body' => bin2hex($body)]);
