<?php
/* The PHP application of the bench: one small JSON answer. */
header('Content-Type: application/json');
echo '{"message":"Hello, World!"}';
