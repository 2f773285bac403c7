#!/usr/bin/env python3
# Finds the multipliers of header_lookup's perfect hash and writes its slots.
# Run by hand after an id was added to headers.h; paste what it prints into
# proxy/http/headers.c. Not part of the build.
import random
import re
import sys

text = open("proxy/http/headers.h").read()
text = text[text.index("enum header_id"):text.index("HEADER_ID_COUNT")]
ids = re.findall(r"\b(HEADER_[A-Z0-9_]+),", text)
names = [i[7:].lower().replace("_", "-") for i in ids[1:]]
SIZE = 256


def slot(name, m):
    n = len(name)
    return (n * m[0] + ord(name[0]) * m[1] + ord(name[-1]) * m[2] +
            ord(name[n - 2]) * m[3]) % SIZE


random.seed(1)
for _ in range(1000000):
    m = [random.randrange(1, 64) for _ in range(4)]
    if len({slot(n, m) for n in names}) == len(names):
        break
else:
    sys.exit("no perfect hash: use another inner character")
print("/* length, first, last, last but one: %d %d %d %d */" % tuple(m))
line = ""
for at, i in sorted((slot(n, m), i) for n, i in zip(names, ids[1:])):
    print("\t[%d] = %s," % (at, i))
