<?php
// A script that is asked for by name: /app.php/echo
require __DIR__ . '/../common.php';
answer($_SERVER['PATH_INFO'] ?? '/');
