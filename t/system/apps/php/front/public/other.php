<?php
header('Content-Type: text/plain');
echo "other script\n";
