"""HPACK (RFC 7541), to encode what a row wants, right or wrong, and to decode
strictly what a server sends. No sockets here."""

# Appendix B. The code is canonical: the lengths say all of it. 'A' is five
# bits; one letter a symbol, EOS the last.
LENGTHS = (
    "ISXXXXXXXTZXXZXXXXXXXXZXXXXXXXXXBFFHIBDGFFDGDBBBAAABBBBBBBCDKBHF"
    "IBCCCCCCCCCCCCCCCCCCCCCCDCDIOIJBKABABABBBACCBBBABCBAABCCCCCKGJIX"
    "PRPPRRRSRSSSSSTSTTRSTSSSSQRSRSSTRQPRRSSQSRRTQRSSQQRQSRSSPRRRSRRS"
    "VVPORSRUVVVWWVTUOQVWWVWTQQVVXWWWPTPQRQQSRRUUTTVSVWVVWWWWWXWWWWWV"
    "Z")
# Appendix A, "~" for a blank.
STATIC_TEXT = """
    :authority :method=GET :method=POST :path=/ :path=/index.html
    :scheme=http :scheme=https :status=200 :status=204 :status=206
    :status=304 :status=400 :status=404 :status=500 accept-charset
    accept-encoding=gzip,~deflate accept-language accept-ranges accept
    access-control-allow-origin age allow authorization cache-control
    content-disposition content-encoding content-language content-length
    content-location content-range content-type cookie date etag expect
    expires from host if-match if-modified-since if-none-match if-range
    if-unmodified-since last-modified link location max-forwards
    proxy-authenticate proxy-authorization range referer refresh retry-after
    server set-cookie strict-transport-security transfer-encoding user-agent
    vary via www-authenticate
"""
STATIC = tuple(
    (name.encode(), value.encode()) for name, value in (
        (":" + e[1:].partition("=")[0] if e[0] == ":" else
         e.partition("=")[0], e.partition("=")[2].replace("~", " "))
        for e in STATIC_TEXT.split()))
assert len(STATIC) == 61
EOS = 256


class Wrong(AssertionError):
    """The server sent what HPACK does not allow."""


def make_codes():
    """symbol -> (code, bits), and the other way round."""
    codes, symbols, code, before = {}, {}, 0, 0
    bits_of = {s: ord(letter) - ord("A") + 5
               for s, letter in enumerate(LENGTHS)}
    for symbol in sorted(range(257), key=lambda s: (bits_of[s], s)):
        bits = bits_of[symbol]
        code <<= bits - before
        before = bits
        codes[symbol] = (code, bits)
        symbols[(code, bits)] = symbol
        code += 1
    return codes, symbols


CODES, SYMBOLS = make_codes()


# --- encoding ----------------------------------------------------------------

def huffman(text, padding=None, eos=False):
    """`padding`: other bits than ones at the end, as text of 0 and 1;
    `eos`: the symbol that nobody may send."""
    bits = "".join(f"{CODES[s][0]:0{CODES[s][1]}b}"
                   for s in list(text) + ([EOS] if eos else []))
    bits += "1" * (-len(bits) % 8) if padding is None else padding
    assert len(bits) % 8 == 0, len(bits)
    return int("1" + bits, 2).to_bytes(len(bits) // 8 + 1, "big")[1:]


def integer(value, prefix, first=0):
    """Section 5.1; `first`: the bits before the prefix."""
    most = (1 << prefix) - 1
    if value < most:
        return bytes([first | value])
    out = bytearray([first | most])
    value -= most
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    out.append(value)
    return bytes(out)


def string(text, huff=False):
    if huff:
        text = huffman(text)
    return integer(len(text), 7, 128 if huff else 0) + text


def indexed(index):
    return integer(index, 7, 0x80)


def table_size(size):
    return integer(size, 5, 0x20)


PLAIN, ADD, NEVER = (0x00, 4), (0x40, 6), (0x10, 4)


def literal(name, value, kind=PLAIN, huff=False):
    """`name`: bytes, or an index."""
    if isinstance(name, int):
        return integer(name, kind[1], kind[0]) + string(value, huff)
    return bytes([kind[0]]) + string(name, huff) + string(value, huff)


def block(*fields, huff=False):
    """Fields as literals that change no table."""
    return b"".join(literal(name, value, huff=huff) for name, value in fields)


# --- decoding ----------------------------------------------------------------

def unhuffman(text):
    out, code, bits = bytearray(), 0, 0
    for byte in text:
        for shift in range(7, -1, -1):
            code, bits = code << 1 | (byte >> shift & 1), bits + 1
            symbol = SYMBOLS.get((code, bits))
            if symbol is None:
                continue
            if symbol == EOS:
                raise Wrong("EOS in a Huffman string")
            out.append(symbol)
            code = bits = 0
    if bits > 7 or code != (1 << bits) - 1:
        raise Wrong("the padding of a Huffman string")
    return bytes(out)


class Decoder:
    def __init__(self, most=4096):
        self.most = most            # what our SETTINGS allow
        self.size = most
        self.table = []
        self.used = 0
        self.owed_update = False    # the limit fell: an update must come

    def limit(self, least):
        """Our SETTINGS with this for the smallest size of the table were
        acknowledged (section 4.2)."""
        self.owed_update = self.owed_update or least < self.size

    def decode(self, data):
        self.data, self.at = data, 0
        fields, is_start = [], True
        while self.at < len(data):
            first = data[self.at]
            if first & 0xe0 == 0x20:
                if not is_start:
                    raise Wrong("a table size update behind a field")
                self.resize(self.integer(5))
                continue
            if self.owed_update:
                raise Wrong("no table size update behind smaller SETTINGS")
            is_start = False
            if first & 0x80:
                fields.append(self.entry(self.integer(7)))
                continue
            adds = first & 0xc0 == 0x40
            index = self.integer(6 if adds else 4)
            name = self.entry(index)[0] if index else self.string()
            field = (name, self.string())
            fields.append(field)
            if adds:
                self.table.insert(0, field)
                self.used += len(field[0]) + len(field[1]) + 32
                self.evict()
        return fields

    def resize(self, size):
        if size > self.most:
            raise Wrong(f"table size {size} above {self.most}")
        self.size = size
        self.owed_update = False
        self.evict()

    def evict(self):
        while self.used > self.size:
            name, value = self.table.pop()
            self.used -= len(name) + len(value) + 32

    def entry(self, index):
        if index == 0 or index > 61 + len(self.table):
            raise Wrong(f"index {index} of {61 + len(self.table)}")
        return STATIC[index - 1] if index <= 61 else self.table[index - 62]

    def byte(self):
        if self.at >= len(self.data):
            raise Wrong("a block that ends inside a field")
        self.at += 1
        return self.data[self.at - 1]

    def integer(self, prefix):
        value = self.byte() & ((1 << prefix) - 1)
        if value < (1 << prefix) - 1:
            return value
        for shift in range(0, 35, 7):
            byte = self.byte()
            value += (byte & 127) << shift
            if byte < 128:
                return value
        raise Wrong("an integer without end")

    def string(self):
        is_coded = self.data[self.at:self.at + 1] >= b"\x80"
        length = self.integer(7)
        text = self.data[self.at:self.at + length]
        if len(text) != length:
            raise Wrong("a string longer than its block")
        self.at += length
        return unhuffman(text) if is_coded else text
