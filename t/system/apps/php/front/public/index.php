<?php
// A front controller: every path that is no script comes here.
require __DIR__ . '/../../common.php';
answer(parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH));
