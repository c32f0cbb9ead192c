"""picture.py IN.pgm OUT.png [SCALE]: a picture of `prony generate` as PNG, each pixel SCALE pixels wide."""
import struct
import sys
import zlib

with open(sys.argv[1], "rb") as file:
    assert file.readline() == b"P5\n"
    width, height = map(int, file.readline().split())
    file.readline()
    pixels = file.read()
scale = int(sys.argv[3]) if len(sys.argv) > 3 else 1
rows = b""
for y in range(height):
    row = b"".join(bytes([p]) * scale for p in pixels[y * width : (y + 1) * width])
    rows += (b"\0" + row) * scale


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


with open(sys.argv[2], "wb") as file:
    file.write(b"\x89PNG\r\n\x1a\n")
    file.write(chunk(b"IHDR", struct.pack(">IIBBBBB", width * scale, height * scale, 8, 0, 0, 0, 0)))
    file.write(chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))
