<?php
// As python/record.py.
$body = file_get_contents('php://input');
$method = $_SERVER['REQUEST_METHOD'];
$row = $_SERVER['HTTP_X_ROW'] ?? 'none';
file_put_contents(getenv('RECORD'), "$method $row " . strlen($body) . "\n",
    FILE_APPEND);
echo json_encode(['method' => $method, 'row' => $row,
    'body' => bin2hex($body)]);
