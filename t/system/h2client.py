"""An HTTP/2 client over python3-h2 that shows what came, event by event."""
import socket

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings

import scalws


class Stream:
    def __init__(self):
        self.interim, self.fields, self.trailers = [], None, None
        self.body = bytearray()     # 100 MiB come in many pieces
        self.ended, self.reset = False, None

    @property
    def status(self):
        return int(self.get(":status"))

    def get(self, name, preset=None):
        return dict(self.fields).get(name, preset)

    def all(self, name):
        return [v for n, v in self.fields if n == name]

    @property
    def over(self):
        return self.ended or self.reset is not None


class H2:
    """One connection. `reads`: windows are opened again as bodies come."""

    def __init__(self, address, reads=True, timeout=30, preface=True,
                 settings=None, sock=None):
        self.sock = sock or scalws.connect(address, timeout)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=True, header_encoding="latin-1",
            validate_outbound_headers=False,
            normalize_outbound_headers=False))
        self.reads, self.streams = reads, {}
        self.goaway, self.last_id, self.closed = None, None, False
        self.pings, self.goaways, self.rest = [], [], b""
        if settings:
            self.h2.local_settings.update(settings)
        if preface:
            self.h2.initiate_connection()
            self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.close()

    def close(self):
        self.sock.close()

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            self.sock.sendall(data)

    def raw(self, kind, flags, stream, payload=b""):
        """A frame of exact bytes."""
        self.flush()
        self.sock.sendall(len(payload).to_bytes(3, "big") +
                          bytes((kind, flags)) + stream.to_bytes(4, "big") +
                          payload)

    def ask(self, path="/", method="GET", headers=(), end=True, body=None,
            host="localhost", scheme="http", pseudo=None):
        """Returns the stream's number."""
        fields = pseudo if pseudo is not None else [
            (":method", method), (":scheme", scheme), (":authority", host),
            (":path", path)]
        number = self.h2.get_next_available_stream_id()
        self.streams[number] = Stream()
        self.h2.send_headers(number, [*fields, *headers],
                             end_stream=end and body is None)
        self.flush()
        if body is not None:
            self.send(number, body, end=end)
        return number

    def send(self, number, data, end=False):
        """As the windows allow; reads meanwhile."""
        while data:
            n = min(len(data), self.h2.max_outbound_frame_size,
                    self.h2.local_flow_control_window(number))
            if n <= 0:
                if self.streams[number].over:
                    return
                self.pump()
                continue
            self.h2.send_data(number, data[:n])
            data = data[n:]
            self.flush()
        if end:
            self.h2.end_stream(number)
            self.flush()

    def pump(self):
        """What one read brings. False: the end."""
        try:
            data = self.sock.recv(262144)
        except ConnectionResetError:
            data = b""
        if not data:
            self.closed = True
            return False
        self.rest += data
        while len(self.rest) >= 9:
            n = 9 + int.from_bytes(self.rest[:3], "big")
            if len(self.rest) < n:
                break
            for event in self.h2.receive_data(self.rest[:n]):
                self.take(event)
            self.rest = self.rest[n:]
        self.flush()
        return True

    def take(self, event):
        stream = self.streams.get(getattr(event, "stream_id", None))
        if isinstance(event, h2.events.InformationalResponseReceived):
            stream.interim.append(event.headers)
        elif isinstance(event, h2.events.ResponseReceived):
            stream.fields = event.headers
        elif isinstance(event, h2.events.TrailersReceived):
            stream.trailers = event.headers
        elif isinstance(event, h2.events.DataReceived):
            stream.body += event.data
            if self.reads and event.flow_controlled_length:
                self.h2.acknowledge_received_data(
                    event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            stream.ended = True
        elif isinstance(event, h2.events.StreamReset):
            stream.reset = event.error_code
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.goaway, self.last_id = event.error_code, event.last_stream_id
            self.goaways.append((event.error_code, event.last_stream_id))
            # python3-h2 thinks that this is the end of it.
            if event.error_code == 0:
                self.h2.state_machine.state = \
                    h2.connection.ConnectionState.CLIENT_OPEN
        elif isinstance(event, h2.events.PingAckReceived):
            self.pings.append(event.ping_data)

    def until(self, what):
        """Read until what() is true, or the connection ends."""
        while not what():
            if not self.pump():
                break
        return what()

    def answer(self, number):
        stream = self.streams[number]
        assert self.until(lambda: stream.over), "closed too early"
        return stream

    def get(self, path="/", **kwargs):
        return self.answer(self.ask(path, **kwargs))

    def at_goaway(self):
        """The code of the GOAWAY that must come, or None: closed without."""
        self.until(lambda: self.goaway is not None)
        return self.goaway

    def at_eof(self):
        return self.until(lambda: self.closed)


def window(**values):
    """Settings by their names in lower case."""
    return {getattr(h2.settings.SettingCodes, name.upper()): value
            for name, value in values.items()}
