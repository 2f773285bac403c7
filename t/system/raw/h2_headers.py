"""HTTP/2 rows: header blocks in frames, padding, and HPACK (RFC 7541)."""
from raw import h2_hpack as hpack
from raw import h2_wire as wire
from raw.h2_rows import (ANY, GREETED, Outcome, answered, either, end_of,
                         goaway, reset, row)
from raw.h2_wire import (COMPRESSION_ERROR, FRAME_SIZE_ERROR, PROTOCOL_ERROR,
                         STREAM_CLOSED, frame, get, head, headers, post)
from raw.rows import NOTHING_WHOLE, Want

BLOCKS = "RFC 9113 4.3"
JOINED = "RFC 9113 6.10"
PADS = "RFC 9113 6.1"
HEAD = head()


def pieces(*sizes, end=True):
    """A request's block cut into HEADERS and CONTINUATIONs of these sizes,
    and the rest."""
    parts, rest = [], head(fields=[(b"x-a", b"1"), (b"x-b", b"2")])
    for size in sizes:
        parts.append(rest[:size])
        rest = rest[size:]
    out = headers(1, parts[0], end, whole=False)
    for part in parts[1:]:
        out += wire.continuation(1, part, whole=False)
    return out + wire.continuation(1, rest)


WHOLE = answered(wants=Want(has=((b"x-a", b"1"), (b"x-b", b"2"))))
BEGUN = headers(1, HEAD[:5], whole=False)
REST = wire.continuation(1, HEAD[5:])


def between(name, data):
    return row(f"in-a-block-{name}", BLOCKS, BEGUN + data + REST,
               goaway(PROTOCOL_ERROR))


CONTINUED = [
    row("continuation-one", JOINED, pieces(5), WHOLE),
    row("continuation-three", JOINED, pieces(5, 1, 9), WHOLE),
    row("continuation-behind-nothing", JOINED, pieces(0), WHOLE),
    row("continuation-empty-ones", JOINED, pieces(0, 0, 3, 0), WHOLE),
    row("continuation-empty-last", JOINED,
        pieces(len(head(fields=[(b"x-a", b"1"), (b"x-b", b"2")]))), WHOLE),
    row("continuation-in-bytes", JOINED, pieces(*[1] * 5), WHOLE),
    row("continuation-with-a-body", JOINED,
        pieces(5, end=False) + wire.data(1, end=True), WHOLE),
    row("continuation-of-trailers", JOINED,
        post() + wire.data(1, b"x") + headers(1, b"", whole=False) +
        wire.continuation(1, hpack.block((b"x-t", b"1"))), answered()),
    row("continuation-padded-head", JOINED,
        headers(1, HEAD[:5], whole=False, pad=9) + REST, answered()),
    row("continuation-end-stream-flag", JOINED,
        headers(1, HEAD[:5], end=False, whole=False) +
        frame(wire.CONTINUATION, 5, 1, HEAD[5:]) +
        wire.data(1, b"x", end=True), answered()),
    between("data", wire.data(1, b"x")),
    between("data-elsewhere", wire.data(3, b"x")),
    between("headers", headers(1, HEAD)),
    between("headers-elsewhere", headers(3, HEAD)),
    between("priority", wire.priority(3)),
    between("rst-stream", wire.rst(1)),
    between("settings", wire.settings()),
    between("settings-ack", wire.SETTINGS_ACK),
    between("push-promise", wire.push_promise(1, 2, HEAD)),
    between("ping", wire.ping()),
    between("goaway", wire.goaway()),
    between("window-update", wire.window(0, 1)),
    between("unknown", frame(wire.UNKNOWN, 0, 0, b"x")),
    between("continuation-elsewhere", wire.continuation(3, HEAD[5:])),
    between("continuation-on-0", wire.continuation(0, HEAD[5:])),
    row("continuation-first", JOINED, wire.continuation(1, HEAD), goaway()),
    row("continuation-behind-end", JOINED, get() + wire.continuation(1),
        goaway(origin=ANY)),
    row("continuation-behind-end-again", JOINED,
        BEGUN + REST + wire.continuation(1), goaway(origin=ANY)),
    row("continuation-behind-data", JOINED,
        post() + wire.data(1, b"x") + wire.continuation(1, HEAD),
        goaway(origin=NOTHING_WHOLE)),
]

PADDING = [
    row("pad-data", PADS, post() + wire.data(1, b"hello", end=True, pad=7),
        answered(wants=Want(b"POST / HTTP/1.1", body=b"hello"))),
    row("pad-data-0", PADS, post() + wire.data(1, b"hello", end=True, pad=0),
        answered(wants=Want(b"POST / HTTP/1.1", body=b"hello"))),
    row("pad-data-255", PADS,
        post() + wire.data(1, b"hello", end=True, pad=255),
        answered(wants=Want(b"POST / HTTP/1.1", body=b"hello"))),
    row("pad-data-only", PADS,
        post() + wire.data(1, b"", pad=5) + wire.data(1, b"", True, 0),
        answered(wants=Want(b"POST / HTTP/1.1"))),
    row("pad-data-all-of-it", PADS,
        post() + frame(wire.DATA, 9, 1, b"\x05" + b"12345"), answered()),
    row("pad-data-too-long", PADS,
        post() + frame(wire.DATA, 9, 1, b"\x06" + b"12345"),
        goaway(origin=NOTHING_WHOLE)),
    row("pad-data-longest", PADS,
        post() + frame(wire.DATA, 9, 1, b"\xff" + b"12345"),
        goaway(origin=NOTHING_WHOLE)),
    row("pad-data-alone-too-long", PADS,
        post() + frame(wire.DATA, 9, 1, b"\x01"),
        goaway(origin=NOTHING_WHOLE)),
    row("pad-data-not-zero", PADS,
        post() + frame(wire.DATA, 9, 1, b"\x03helloxyz"),
        answered(wants=Want(b"POST / HTTP/1.1", body=b"hello")),
        goaway(origin=NOTHING_WHOLE)),
    row("pad-headers", "RFC 9113 6.2", headers(1, HEAD, pad=200),
        answered()),
    row("pad-headers-0", "RFC 9113 6.2", headers(1, HEAD, pad=0),
        answered()),
    row("pad-headers-and-priority", "RFC 9113 6.2",
        frame(wire.HEADERS, 0x2d, 1, b"\x03" + bytes(4) + b"\x0f" + HEAD +
              bytes(3)), answered()),
    row("pad-headers-too-long", "RFC 9113 6.2",
        frame(wire.HEADERS, 0xd, 1, bytes([len(HEAD) + 1]) + HEAD),
        goaway()),
    row("pad-headers-longest", "RFC 9113 6.2",
        frame(wire.HEADERS, 0xd, 1, b"\xff" + HEAD), goaway()),
    row("pad-headers-into-priority", "RFC 9113 6.2",
        frame(wire.HEADERS, 0x2d, 1, b"\x03" + bytes(5) + b"\0\0"),
        goaway(PROTOCOL_ERROR, FRAME_SIZE_ERROR)),
    row("pad-headers-not-zero", "RFC 9113 6.2",
        frame(wire.HEADERS, 0xd, 1, b"\x03" + HEAD + b"xyz"), answered(),
        goaway()),
]


# --- HPACK -------------------------------------------------------------------

def bad(name, rfc, *more, before=b""):
    """A good head, and then these bytes of the block."""
    return row(f"hpack-{name}", f"RFC 7541 {rfc}",
               before + headers(1, HEAD + b"".join(more)),
               goaway(COMPRESSION_ERROR))


def good(name, rfc, block, wants=ANY):
    return row(f"hpack-{name}", f"RFC 7541 {rfc}", headers(1, block),
               answered(wants=wants))


def has(*pairs):
    return Want(has=pairs)


# A string of Huffman code whose bytes are given.
def coded(data):
    return hpack.literal(b"x-a", b"")[:-1] + \
        hpack.integer(len(data), 7, 128) + data


ADD = hpack.ADD
A1 = hpack.literal(b"x-a", b"1", ADD)
B2 = hpack.literal(b"x-b", b"2", ADD)
LONG = b"v" * 900
STATIC_HEAD = b"\x82\x87\x84" + hpack.literal(1, wire.AUTHORITY)

CODING = [
    good("static-indices", "6.1", STATIC_HEAD),
    good("static-name", "6.2.2", HEAD + hpack.literal(58, b"me"),
         has((b"user-agent", b"me"))),
    good("never-indexed", "6.2.3", HEAD + hpack.literal(
        b"x-a", b"1", hpack.NEVER), has((b"x-a", b"1"))),
    good("never-indexed-name", "6.2.3", HEAD + hpack.literal(
        23, b"Basic eA==", hpack.NEVER),
        has((b"authorization", b"Basic eA=="))),
    good("added", "6.2.1", HEAD + A1, has((b"x-a", b"1"))),
    good("added-and-used", "2.3.2", HEAD + A1 + B2 + b"\xbe\xbf",
         has((b"x-a", b"1"), (b"x-b", b"2"))),
    good("huffman", "5.2", head(huff=True, fields=[
        (b"x-a", bytes(range(33, 127)))]),
        has((b"x-a", bytes(range(33, 127))))),
    good("huffman-of-obs-text", "5.2", head(fields=[
        (b"x-a", bytes(range(128, 256)))], huff=True),
        has((b"x-a", bytes(range(128, 256))))),
    good("huffman-empty", "5.2", HEAD + coded(b""), has((b"x-a", b""))),
    good("integer-of-two-bytes", "5.1",
         HEAD + hpack.literal(b"x-a", b"1" * 127), has((b"x-a", b"1" * 127))),
    good("integer-of-three-bytes", "5.1",
         HEAD + hpack.literal(b"x-a", b"1" * 5000),
         has((b"x-a", b"1" * 5000))),
    row("hpack-table-kept", "RFC 7541 2.3.2",
        headers(1, HEAD + A1 + B2) + headers(3, HEAD + b"\xbe\xbf"),
        answered(1, 3, wants=(has((b"x-a", b"1")),
                              has((b"x-a", b"1"), (b"x-b", b"2"))))),
    row("hpack-table-name-used", "RFC 7541 6.2.1",
        headers(1, HEAD + A1) + headers(3, HEAD + hpack.literal(62, b"5")),
        answered(1, 3, wants=(has((b"x-a", b"1")), has((b"x-a", b"5"))))),
    row("hpack-table-evicts", "RFC 7541 4.4",
        headers(1, HEAD + b"".join(hpack.literal(
            b"x-%d" % n, LONG, ADD) for n in range(6))) +
        headers(3, HEAD + b"\xbe\xbf\xc0\xc1"),
        answered(1, 3)),
    row("hpack-table-evicted", "RFC 7541 4.4",
        headers(1, HEAD + b"".join(hpack.literal(
            b"x-%d" % n, LONG, ADD) for n in range(6))) +
        headers(3, HEAD + b"\xc2"), goaway(COMPRESSION_ERROR, origin=ANY)),
    row("hpack-entry-above-the-table", "RFC 7541 4.4",
        headers(1, HEAD + A1 + hpack.literal(b"x-c", b"v" * 4096, ADD)) +
        headers(3, HEAD + b"\xbe"), goaway(COMPRESSION_ERROR, origin=ANY)),
    row("hpack-entry-above-the-table-is-used", "RFC 7541 4.4",
        headers(1, HEAD + hpack.literal(b"x-c", b"v" * 4096, ADD)),
        answered(wants=has((b"x-c", b"v" * 4096)))),
    row("hpack-kept-over-a-malformed-request", BLOCKS,
        headers(1, HEAD + A1 + hpack.block((b"Upper", b"x"))) +
        headers(3, HEAD + b"\xbe"), reset(also=(3,))),
    row("hpack-kept-over-a-malformed-start", BLOCKS,
        headers(1, hpack.block((b"Upper", b"x")) + A1 + HEAD) +
        headers(3, HEAD + b"\xbe"), reset(also=(3,))),
    row("hpack-kept-over-trailers", BLOCKS,
        post() + headers(1, A1) + headers(3, HEAD + b"\xbe"),
        answered(1, 3)),
    row("hpack-kept-over-a-closed-stream", BLOCKS,
        post() + wire.rst(1) + headers(1, A1) + headers(3, HEAD + b"\xbe"),
        answered(3), Outcome({1: 200, 3: 200}),
        reset(STREAM_CLOSED, also=(3,)),
        goaway(STREAM_CLOSED, PROTOCOL_ERROR, origin=ANY)),
    row("hpack-kept-over-continuations", BLOCKS,
        headers(1, HEAD + A1[:2], whole=False) +
        wire.continuation(1, A1[2:]) + headers(3, HEAD + b"\xbe"),
        answered(1, 3)),
]

SIZES = [
    good("size-0", "6.3", hpack.table_size(0) + HEAD),
    good("size-4096", "6.3", hpack.table_size(4096) + HEAD),
    good("size-twice", "4.2",
         hpack.table_size(0) + hpack.table_size(4096) + HEAD + A1 + b"\xbe"),
    row("hpack-size-0-empties", "RFC 7541 4.3",
        headers(1, HEAD + A1) +
        headers(3, hpack.table_size(0) + hpack.table_size(4096) + HEAD +
                b"\xbe"), goaway(COMPRESSION_ERROR, origin=ANY)),
    row("hpack-size-0-keeps-nothing", "RFC 7541 4.3",
        headers(1, hpack.table_size(0) + HEAD + A1 + b"\xbe"),
        goaway(COMPRESSION_ERROR)),
    row("hpack-size-above", "RFC 7541 6.3",
        (GREETED, lambda c: headers(1, hpack.table_size(
            c.settings.get(wire.HEADER_TABLE_SIZE, 4096) + 1) + HEAD)),
        goaway(COMPRESSION_ERROR)),
    row("hpack-size-most", "RFC 7541 6.3",
        headers(1, hpack.table_size(0xffffffff) + HEAD),
        goaway(COMPRESSION_ERROR)),
    row("hpack-size-behind-a-field", "RFC 7541 4.2",
        headers(1, b"\x82" + hpack.table_size(0) + STATIC_HEAD[1:]),
        goaway(COMPRESSION_ERROR)),
    bad("size-at-the-end", "4.2", hpack.table_size(100)),
    row("hpack-size-in-continuation", "RFC 7541 4.2",
        headers(1, HEAD, whole=False) +
        wire.continuation(1, hpack.table_size(100)),
        goaway(COMPRESSION_ERROR)),
    row("hpack-size-only", "RFC 7541 6.3",
        headers(1, hpack.table_size(100)), reset()),
    row("hpack-size-integer-endless", "RFC 7541 5.1",
        headers(1, b"\x3f" + b"\xff" * 10 + b"\x7f" + HEAD),
        goaway(COMPRESSION_ERROR)),
]

BROKEN = [
    bad("index-0", "6.1", b"\x80"),
    bad("index-62-of-an-empty-table", "2.3.3", b"\xbe"),
    bad("index-63-of-one", "2.3.3", A1 + b"\xbf"),
    bad("index-200", "2.3.3", hpack.indexed(200)),
    bad("index-4-gib", "5.1", b"\xff\xff\xff\xff\xff\x0f"),
    bad("index-endless", "5.1", b"\xff" * 30 + b"\x01"),
    bad("index-of-64-bits", "5.1", b"\xff" + b"\x80" * 9 + b"\x01"),
    bad("index-cut", "5.1", b"\xff\x80"),
    bad("name-62-of-an-empty-table", "2.3.3", hpack.literal(62, b"x", ADD)),
    bad("name-62-not-added", "2.3.3", hpack.literal(62, b"x")),
    bad("name-62-never-indexed", "2.3.3",
        hpack.literal(62, b"x", hpack.NEVER)),
    bad("name-index-endless", "5.1", b"\x7f" + b"\xff" * 20),
    bad("only-a-type", "6.2.2", b"\0"),
    bad("name-missing-value", "6.2.2", b"\0\x03x-a"),
    bad("name-cut", "5.2", b"\0\x09x-a"),
    bad("value-cut", "5.2", b"\0\x03x-a\x05abc"),
    bad("value-length-cut", "5.1", b"\0\x03x-a\x7f\x80"),
    bad("value-length-endless", "5.1", b"\0\x03x-a\x7f" + b"\xff" * 20),
    bad("value-of-4-gib", "5.2", b"\0\x03x-a\x7f\xff\xff\xff\xff\x0fabc"),
    bad("huffman-padding-of-8-bits", "5.2",
        coded(hpack.huffman(b"0000" * 2) + b"\xff")),
    bad("huffman-padding-of-24-bits", "5.2",
        coded(hpack.huffman(b"00000000") + b"\xff" * 3)),
    bad("huffman-padding-of-zeros", "5.2",
        coded(hpack.huffman(b"1", padding="000"))),
    bad("huffman-padding-mixed", "5.2",
        coded(hpack.huffman(b"1", padding="110"))),
    bad("huffman-eos", "5.2", coded(hpack.huffman(b"a", eos=True))),
    bad("huffman-eos-alone", "5.2", coded(b"\xff\xff\xff\xff")),
    bad("huffman-only-padding", "5.2", coded(b"\xff")),
    bad("huffman-cut", "5.2", b"\0\x03x-a\x85" + hpack.huffman(b"abc")),
    row("hpack-bad-in-a-continuation", "RFC 7541 2.3.3",
        headers(1, HEAD, whole=False) + wire.continuation(1, b"\xbe"),
        goaway(COMPRESSION_ERROR)),
    row("hpack-bad-in-trailers", "RFC 7541 2.3.3",
        post() + wire.data(1, b"x") + headers(1, b"\xbe"),
        goaway(COMPRESSION_ERROR, origin=NOTHING_WHOLE)),
    row("hpack-bad-on-a-malformed-request", BLOCKS,
        headers(1, hpack.block((b"Upper", b"x")) + b"\xbe"),
        goaway(COMPRESSION_ERROR)),
    row("hpack-bad-beside-a-good-request", BLOCKS,
        (get(1), end_of(1), headers(3, HEAD + b"\x80")),
        goaway(COMPRESSION_ERROR, origin=ANY)),
    row("hpack-empty-block", "RFC 9113 8.3.1", headers(1, b""), reset()),
]


def table_small(client):
    """Every answer's block must begin with the update, then add nothing."""
    return None if not client.decoder.table and client.decoder.size == 0 \
        else f"table of {client.decoder.size}: {client.decoder.table}"


OURS = [
    row("hpack-our-table-0", "RFC 7541 4.2",
        get(1) + get(3) + get(5), answered(1, 3, 5, check=table_small),
        settings=((wire.HEADER_TABLE_SIZE, 0),)),
    row("hpack-our-table-100", "RFC 7541 4.2",
        (get(1), end_of(1),
         wire.settings((wire.HEADER_TABLE_SIZE, 100)) + get(3) + get(5),
         end_of(5), wire.settings((wire.HEADER_TABLE_SIZE, 0),
                                  (wire.HEADER_TABLE_SIZE, 4096)), get(7)),
        answered(1, 3, 5, 7)),
]

ROWS = CONTINUED + PADDING + CODING + SIZES + BROKEN + OURS
