"""The native port, byte by byte: greetings as docs/protocols/greeting.md has them, and signals."""

import hashlib
import hmac
import os
import socket

MAGIC, VERSION = b"LatsDB\r\n", 5
NODE, CLIENT, ADMIN = 1, 2, 3
SCOPES = {NODE: b"node", CLIENT: b"client", ADMIN: b"admin"}
HELLO_BYTES, CHALLENGE_BYTES, PROOF_BYTES = 48, 32, 32
# LDB numbers of refusals.
VERSION_UNSUPPORTED, WRONG_CLUSTER, SECRET_WRONG, NOT_A_MEMBER = 60, 61, 67, 68
CONTROL, CLIENT_KIND = 1, 4


def secret_of(directory):
    """The secret of the cluster in a directory."""
    with open(os.path.join(directory, "secret"), encoding="ascii") as file:
        return bytes.fromhex(file.read().strip())


def hello(kind, node=0, life=0, cluster=0, client=0, version=VERSION):
    """A greeting."""
    numbers = [(version, 2), (kind, 2), (node, 2), (0, 2), (life, 4), (0, 4), (cluster, 8), (client, 8), (0, 8)]
    return MAGIC + b"".join(number.to_bytes(size, "little") for number, size in numbers)


def refusal(answer):
    """The number with which an answer refuses; 0 if it does not."""
    return int.from_bytes(answer[14:16], "little") if answer.startswith(MAGIC) else 0


def proof(secret, kind, end, opener, acceptor):
    """What an end proves with: `end` is b"opener" or b"acceptor"."""
    key = hmac.digest(secret, b"latsdb scope " + SCOPES[kind], hashlib.sha256)
    return hmac.digest(key, end + opener + acceptor, hashlib.sha256)


class Closed(Exception):
    """The node has closed the connection; `code` is its refusal, or 0."""

    def __init__(self, code):
        super().__init__(f"closed by the node, code {code}")
        self.code = code


class Link:
    """A connection to a native port."""

    def __init__(self, port, timeout=30):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.opener = self.acceptor = None

    def close(self):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Closed(0) from error

    def take(self, count):
        """So many bytes, or less if the node closes."""
        data = b""
        try:
            while len(data) < count and (more := self.socket.recv(count - len(data))):
                data += more
        except ConnectionError:
            pass
        return data

    def take_all(self, count):
        data = self.take(count)
        if len(data) < count:
            raise Closed(refusal(data))
        return data

    def open(self, greeting, challenge=None):
        """Says who we are; gives the node's opening."""
        self.opener = greeting + (challenge or os.urandom(CHALLENGE_BYTES))
        self.send(self.opener)
        head = self.take_all(HELLO_BYTES)
        if refusal(head):
            raise Closed(refusal(head))
        self.acceptor = head + self.take_all(CHALLENGE_BYTES)
        return self.acceptor

    def prove(self, secret, kind):
        """Proves it; the node must prove itself, too."""
        self.send(proof(secret, kind, b"opener", self.opener, self.acceptor))
        self.check(secret, kind)

    def check(self, secret, kind):
        """The node's answer to a proof."""
        answer = self.take_all(PROOF_BYTES)
        if answer.startswith(MAGIC):
            raise Closed(refusal(answer))
        assert answer == proof(secret, kind, b"acceptor", self.opener, self.acceptor), "the node proves nothing"

    def is_closed(self):
        """True once the node has closed it; what it says until then is of no interest."""
        try:
            while self.socket.recv(65536):
                pass
        except TimeoutError:
            return False
        except OSError:
            pass
        return True


def greeted(port, secret, kind, **who):
    """A connection that is in use."""
    link = Link(port)
    link.open(hello(kind, **who))
    link.prove(secret, kind)
    return link


def signal(number, node, body, block=CONTROL):
    """A signal to a block of a node, as a client sends it."""
    length = (32 + len(body) + 7) // 8 * 8
    place = lambda kind: node.to_bytes(2, "little") + kind.to_bytes(2, "little") + bytes(4)
    head = length.to_bytes(4, "little") + number.to_bytes(2, "little") + bytes([1, 0]) + place(CLIENT_KIND) + place(block)
    return (head + bytes(8) + body).ljust(length, b"\0")
