"""Bodies of Prometheus' remote write, without a library, for the other scripts in this folder."""
import struct


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def snappy(raw):
    """Encodes a snappy block of literals only."""
    out = [varint(len(raw))]
    for start in range(0, len(raw), 65536):
        part = raw[start:start + 65536]
        out.append(bytes([61 << 2]) + struct.pack("<H", len(part) - 1) + part)
    return b"".join(out)


def labels(name, **tags):
    """Encodes the labels of a series once, because each round sends them again."""
    pairs = sorted({"__name__": name, **tags}.items())
    return b"".join(field(1, field(1, key.encode()) + field(2, value.encode())) for key, value in pairs)


def sample(at_ms, value):
    return field(2, b"\x09" + struct.pack("<d", value) + b"\x10" + varint(at_ms))


def request(series):
    """Encodes a request from pairs: encoded labels, and samples as pairs of a time in milliseconds and a value."""
    return snappy(b"".join(
        field(1, encoded + b"".join(sample(at, value) for at, value in samples)) for encoded, samples in series))


HEADERS = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf",
           "X-Prometheus-Remote-Write-Version": "0.1.0"}
