"""A MySQL client in a hundred lines: text protocol, native password, empty password. For tests."""

import socket
import struct


class MySQLError(Exception):
    """An error that the server has sent."""

    def __init__(self, number, state, message):
        super().__init__(f"{number} ({state}): {message}")
        self.number, self.state = number, state


class Connection:
    """One connection; raises OSError when it is lost."""

    def __init__(self, port, database="", timeout=60.0, host="127.0.0.1", more_flags=0):
        self.socket = socket.create_connection((host, port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # What has been received, and where what is not read yet begins.
        self.buffer, self.at = b"", 0
        greeting = self._packet()
        if greeting[0] == 0xFF:
            raise self._error(greeting)
        flags = 0x0200 | 0x8000 | 0x80000 | 0x2000 | more_flags | (0x8 if database else 0)
        body = struct.pack("<IIB23x", flags, 1 << 24, 45) + b"root\0" + b"\0"
        if database:
            body += database.encode() + b"\0"
        body += b"mysql_native_password\0"
        self._send(1, body)
        answer = self._packet()
        if answer[0] == 0xFE:
            self._send(3, b"")
            answer = self._packet()
        if answer[0] == 0xFF:
            raise self._error(answer)

    def close(self):
        self.socket.close()

    def _need(self, count):
        """Waits until so many bytes can be read."""
        missing = count - (len(self.buffer) - self.at)
        if missing <= 0:
            return
        pieces = [self.buffer[self.at :]]
        while missing > 0:
            more = self.socket.recv(262144)
            if not more:
                raise ConnectionError("connection closed")
            pieces.append(more)
            missing -= len(more)
        self.buffer, self.at = b"".join(pieces), 0

    def _read(self, count):
        self._need(count)
        out = self.buffer[self.at : self.at + count]
        self.at += count
        return out

    def _packet(self):
        self._need(4)
        at = self.at
        self.at = at + 4
        return self._read(int.from_bytes(self.buffer[at : at + 3], "little"))

    def _send(self, sequence, body):
        self.socket.sendall(len(body).to_bytes(3, "little") + bytes([sequence]) + body)

    @staticmethod
    def _error(packet):
        number = int.from_bytes(packet[1:3], "little")
        return MySQLError(number, packet[4:9].decode(), packet[9:].decode(errors="replace"))

    @staticmethod
    def _length(data, at):
        first = data[at]
        if first < 0xFB:
            return first, at + 1
        if first == 0xFB:
            return None, at + 1
        size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
        return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size

    def query(self, text):
        """Runs a statement; rows as lists of str or None, or the number of affected rows."""
        self.send_query(text)
        return self.receive_answer()

    def send_query(self, text):
        """Sends a statement, whose answer `receive_answer` waits for."""
        self._send(0, b"\x03" + text.encode())

    def receive_answer(self):
        """What `query` gives, of the statement that was sent."""
        first = self._packet()
        if first[0] == 0xFF:
            raise self._error(first)
        if first[0] == 0x00:
            return self._length(first, 1)[0]
        columns = self._length(first, 0)[0]
        for _ in range(columns + 1):
            self._packet()
        rows = []
        while True:
            packet = self._packet()
            if packet[0] == 0xFE and len(packet) < 9:
                return rows
            if packet[0] == 0xFF:
                raise self._error(packet)
            row, at = [], 0
            for _ in range(columns):
                length = packet[at]
                at += 1
                if length == 0xFB:
                    row.append(None)
                    continue
                if length > 0xFB:
                    length, at = self._length(packet, at - 1)
                row.append(packet[at : at + length].decode())
                at += length
            rows.append(row)


