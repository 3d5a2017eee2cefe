"""Small .npy and PNG files made by hand, good and malformed, with the standard library alone."""

import struct
import zlib

# ---- .npy ------------------------------------------------------------------------------------


def npy_header(text, version=(1, 0), length=None):
    """Magic, version, header length (a lie where `length` says so) and header text."""
    data = text.encode("latin-1")
    size = len(data) if length is None else length
    packed = struct.pack("<H" if version[0] == 1 else "<I", size)
    return b"\x93NUMPY" + bytes(version) + packed + data


STRUCT_CODE = {"b1": "?", "u1": "B", "i1": "b", "u2": "H", "i2": "h", "u4": "I", "i4": "i",
               "u8": "Q", "i8": "q", "f2": "e", "f4": "f", "f8": "d"}


def npy(values, shape, descr="<f4", fortran=False, version=(1, 0)):
    """An array; `values` are in C order whatever the order of the file."""
    if fortran:
        values = [values[i] for i in fortran_order(shape)]
    order = ">" if descr[0] == ">" else "<"
    data = struct.pack(order + str(len(values)) + STRUCT_CODE[descr[1:]], *values)
    shape_text = "(" + ", ".join(map(str, shape)) + (",)" if len(shape) == 1 else ")")
    text = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (descr, fortran, shape_text)
    prefix = 10 if version[0] == 1 else 12
    text += " " * (-(prefix + len(text) + 1) % 64) + "\n"
    return npy_header(text, version) + data


def fortran_order(shape):
    """The C-order index of each element in Fortran order."""
    strides = [0] * len(shape)
    step = 1
    for axis in reversed(range(len(shape))):
        strides[axis] = step
        step *= shape[axis]
    order = [0]
    for axis in range(len(shape)):
        order = [i + k * strides[axis] for k in range(shape[axis]) for i in order]
    return order


def read_npy(data, descr="<f4"):
    """(shape, values) of an array as the command writes it."""
    assert data[:8] == b"\x93NUMPY\x01\x00"
    length = struct.unpack("<H", data[8:10])[0]
    assert (10 + length) % 64 == 0
    header = eval(data[10:10 + length].decode("latin-1"), {"__builtins__": {}})
    assert header["descr"] == descr and header["fortran_order"] is False
    body, code = data[10 + length:], STRUCT_CODE[descr[1:]]
    count = len(body) // struct.calcsize(code)
    return header["shape"], list(struct.unpack("<%d%s" % (count, code), body))


def malformed_npy(shape, value=1.0):
    """(name, bytes, words of the message) of files that are not float arrays of `shape`."""
    count = 1
    for extent in shape:
        count *= extent
    good = npy([value] * count, shape)
    body = b"\0" * (4 * count)
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }\n" % (tuple(shape),)

    def with_text(changed, data=body):
        return npy_header(changed) + data

    def with_shape(shape_text):
        return with_text(text.replace(str(tuple(shape)), shape_text))

    return [
        ("empty", b"", "is empty"),
        ("not-npy", b"hello, world\n", "not a .npy file"),
        ("half-magic", b"\x93NUM", "not a .npy file"),
        ("magic-only", b"\x93NUMPY", "truncated"),
        ("npz", b"PK\x03\x04" + bytes(40), ".npz archive"),
        ("version-0", good[:6] + b"\x00\x00" + good[8:], "version 0.0"),
        ("version-4", good[:6] + b"\x04\x00" + good[8:], "version 4.0"),
        ("version-1.1", good[:6] + b"\x01\x01" + good[8:], "version 1.1"),
        ("no-length", good[:9], "truncated"),
        ("header-cut", good[:40], "truncated"),
        ("header-length-lies", npy_header(text, (2, 0), 0xffffffff) + body, "truncated"),
        ("header-length-short", npy_header(text, length=20) + body, "header is broken"),
        ("data-cut", good[:-1], "truncated"),
        ("data-missing", good[:-4 * count], "truncated"),
        ("data-too-long", good + b"\0", "too many"),
        ("no-dictionary", with_text("['descr']\n"), "not a dictionary"),
        ("unclosed-dictionary", with_text(text.replace("}", " ")), "header is broken"),
        ("unclosed-string", with_text("{'descr: <f4}\n"), "string does not end"),
        ("binary-header", with_text("\0\xff\x80" * 20), "header is broken"),
        ("unknown-key", with_text(text.replace("'shape'", "'shapf'")), "unknown key"),
        ("key-twice", with_text(text.replace("}", "'shape': (1,), }")), "twice"),
        ("key-missing", with_text("{'descr': '<f4', 'shape': (1,), }\n"), "missing"),
        ("no-colon", with_text(text.replace("'shape':", "'shape'")), "colon"),
        ("junk-after", with_text(text.replace("\n", "x\n")), "follows the dictionary"),
        ("order-is-a-number", with_text(text.replace("False", "0")), "neither True nor False"),
        ("shape-is-a-list", with_shape("[4, 4]"), "not a tuple"),
        ("shape-negative", with_shape("(-4, 4)"), "not a number"),
        ("shape-float", with_shape("(4.0, 4)"), "header is broken"),
        ("shape-open", with_shape("(4, 4"), "header is broken"),
        ("shape-empty", with_shape("()"), "single number"),
        ("shape-zero", with_shape("(0, 4)"), "empty array"),
        ("shape-six-axes", with_shape("(1, 1, 1, 1, 1, 1)"), "more than 5 axes"),
        ("shape-overflow", with_shape("(%d, %d)" % (2**40, 2**40)), "absurdly large"),
        ("shape-wraps-to-fit", with_shape("(%d, 4)" % (2**62 + 4)), "absurdly large"),
        ("shape-huge-number", with_shape("(" + "9" * 60 + ",)"), "absurdly large"),
        ("shape-lies", with_shape("(1000000, 1000000)"), "truncated"),
        ("complex", with_text(text.replace("<f4", "<c8")), "of type '<c8'"),
        ("object", with_text(text.replace("<f4", "|O")), "of type '|O'"),
        ("unicode", with_text(text.replace("<f4", "<U4")), "of type '<U4'"),
        ("float128", with_text(text.replace("<f4", "<f16")), "of type '<f16'"),
        ("float24", with_text(text.replace("<f4", "<f3")), "of type '<f3'"),
        ("no-byte-order", with_text(text.replace("<f4", "f4")), "of type 'f4'"),
        ("structured", with_text(text.replace("'<f4'", "[('x', '<f4')]")), "structured array"),
    ]


# ---- PNG -------------------------------------------------------------------------------------

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGBA: 4}


def chunk(kind, data, crc=None):
    check = zlib.crc32(kind + data) if crc is None else crc
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)


def ihdr(width, height, depth=8, colour=RGB, compression=0, filtering=0, interlace=0):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, compression,
                                      filtering, interlace))


def pack_row(samples, depth):
    if depth == 16:
        return struct.pack(">%dH" % len(samples), *samples)
    if depth == 8:
        return bytes(samples)
    bits = "".join(format(s, "0%db" % depth) for s in samples)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))


ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
         (0, 1, 1, 2)]


def png(pixels, depth=8, colour=RGB, palette=None, interlace=False, extra=b""):
    """A picture from rows of pixels, each a tuple of samples."""
    height, width = len(pixels), len(pixels[0])
    passes = ADAM7 if interlace else [(0, 0, 1, 1)]
    raw = b""
    for x0, y0, dx, dy in passes:
        for y in range(y0, height, dy):
            samples = [s for x in range(x0, width, dx) for s in pixels[y][x]]
            if samples:
                raw += b"\0" + pack_row(samples, depth)
    plte = b"" if palette is None else chunk(b"PLTE", bytes(s for c in palette for s in c))
    return (SIGNATURE + ihdr(width, height, depth, colour, interlace=int(interlace)) + plte +
            extra + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def number_png(rows, depth=8, **more):
    """Labels as a grey picture."""
    return png([[(v,) for v in row] for row in rows], depth, GREY, **more)


def read_png(data):
    """(width, height, depth, colour type, rows of pixels) of an 8-bit picture."""
    assert data[:8] == SIGNATURE
    width, height, depth, colour = struct.unpack(">IIBB", data[16:26])
    assert depth == 8 and data[28] == 0
    at, packed = 8, b""
    while at < len(data):
        length = struct.unpack(">I", data[at:at + 4])[0]
        if data[at + 4:at + 8] == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += 12 + length
    step = CHANNELS[colour]
    raw, above, rows = zlib.decompress(packed), bytes(width * step), []
    for y in range(height):
        line = raw[y * (width * step + 1):(y + 1) * (width * step + 1)]
        above = unfilter(line[0], line[1:], above, step)
        rows.append([tuple(above[i:i + step]) for i in range(0, len(above), step)])
    return width, height, depth, colour, rows


def read_palette(data):
    """The colours of an indexed picture."""
    at = data.index(b"PLTE")
    length = struct.unpack(">I", data[at - 4:at])[0]
    return [tuple(data[at + 4 + i:at + 7 + i]) for i in range(0, length, 3)]


def unfilter(kind, line, above, step):
    """One row without its PNG filter."""
    out = bytearray()
    for i, value in enumerate(line):
        a = out[i - step] if i >= step else 0
        b = above[i]
        c = above[i - step] if i >= step else 0
        nearest = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
        out.append((value + (0, a, b, (a + b) // 2, nearest)[kind]) & 255)
    return bytes(out)


def malformed_png(width, height):
    """(name, bytes, words of the message) of files that are not colour pictures."""
    row = [(10, 20, 30)] * width
    good = png([row] * height)
    raw = (b"\0" + bytes([10, 20, 30]) * width) * height
    head, end = SIGNATURE + ihdr(width, height), chunk(b"IEND", b"")

    def body(data):
        return chunk(b"IDAT", zlib.compress(data))

    def with_header(header):
        return SIGNATURE + header + body(raw) + end

    bad = "bad PNG"
    return [
        ("empty", b"", "is empty"),
        ("not-png", b"GIF89a" + bytes(40), "not an image"),
        ("half-signature", good[:5], "not an image"),
        ("ascii-transfer", good.replace(b"\r\n", b"\n", 1), "not an image"),
        ("signature-only", good[:8], "truncated"),
        ("header-cut", good[:20], "truncated"),
        ("no-header", SIGNATURE + body(raw) + end, bad),
        ("header-twice", head + ihdr(width, height) + body(raw) + end, bad),
        ("header-crc", SIGNATURE + chunk(b"IHDR", good[16:29], 0) + good[33:], bad),
        ("header-short", SIGNATURE + chunk(b"IHDR", good[16:28]) + good[33:], bad),
        ("width-zero", with_header(ihdr(0, height)), bad),
        ("height-zero", with_header(ihdr(width, 0)), bad),
        ("width-top-bit", with_header(ihdr(2**31, height)), bad),
        ("absurd-size", with_header(ihdr(2**31 - 1, 2**31 - 1)), bad),
        ("size-lies", with_header(ihdr(40000, 40000)), "more pixels"),
        ("size-lies-a-little", with_header(ihdr(width + 1, height)), bad),
        ("height-lies-a-little", with_header(ihdr(width, height + 1)), bad),
        ("depth-3", with_header(ihdr(width, height, depth=3)), bad),
        ("depth-4-rgb", with_header(ihdr(width, height, depth=4)), bad),
        ("colour-type-5", with_header(ihdr(width, height, colour=5)), bad),
        ("compression-1", with_header(ihdr(width, height, compression=1)), bad),
        ("filter-method-1", with_header(ihdr(width, height, filtering=1)), bad),
        ("interlace-2", with_header(ihdr(width, height, interlace=2)), bad),
        ("interlace-lies", with_header(ihdr(width, height + 8, interlace=1)), bad),
        ("data-cut", good[:-20], "truncated"),
        ("no-end", good[:-12], "truncated"),
        ("end-cut", good[:-3], "truncated"),
        ("no-data", head + end, bad),
        ("data-crc", head + chunk(b"IDAT", zlib.compress(raw), 1) + end, bad),
        ("data-not-zlib", head + chunk(b"IDAT", b"this is no zlib stream") + end, bad),
        ("data-adler", head + chunk(b"IDAT", zlib.compress(raw)[:-4] + b"abcd") + end, bad),
        ("data-short", head + body(raw[:-1]) + end, bad),
        ("data-half-stream", head + chunk(b"IDAT", zlib.compress(raw)[:-8]) + end, bad),
        ("filter-type-9", head + body(b"\x09" + raw[1:]) + end, bad),
        ("chunk-length-lies", head + struct.pack(">I", 2**31 - 1) + good[37:], bad),
        ("critical-chunk", head + chunk(b"ABCD", b"?") + body(raw) + end, bad),
        ("palette-missing", SIGNATURE + ihdr(width, height, colour=PALETTE) +
         body((b"\0" + bytes(width)) * height) + end, bad),
        ("palette-odd", SIGNATURE + ihdr(width, height, colour=PALETTE) +
         chunk(b"PLTE", bytes(7)) + body((b"\0" + bytes(width)) * height) + end, bad),
        ("palette-index", SIGNATURE + ihdr(width, height, colour=PALETTE) +
         chunk(b"PLTE", bytes(6)) + body((b"\0" + b"\x05" * width) * height) + end,
         "palette does not have"),
    ]


# ---- palettes ----------------------------------------------------------------------------------

MALFORMED_PALETTES = (
    (b"", "has no colours"), (b"\n\n  \n", "has no colours"), (b"# nothing\n", "has no colours"),
    (b"GIMP Palette\nName: empty\n", "has no colours"), (b"1 2\n", "line 1 is not a colour"),
    (b"1,2,3\n", "line 1 is not a colour"), (b"#010203\n300 1 1\n", "line 2 is not a colour"),
    (b"1 2 256\n", "line 1 is not a colour"), (b"1 2 9999\n", "line 1 is not a colour"),
    (b"#01020\nred\n", "line 2 is not a colour"), (b"red\n", "line 1 is not a colour"),
    (b"1 2 3x\n", "line 1 is not a colour"), (b"-1 2 3\n", "line 1 is not a colour"),
    (b"1 -2 3\n", "line 1 is not a colour"), (b"0.5 0.5 0.5\n", "line 1 is not a colour"),
    (b"nan 1 2\n", "line 1 is not a colour"), (b"1 2 3\n4 5", "line 2 is not a colour"),
    (b"[1, 2, 3]\n", "line 1 is not a colour"), (b"\xff\xfe1 2 3\n", "line 1 is not a colour"),
    (b"1 2 3\n" * 257, "more than 256"), (b"1 2\0 3", "not a text file"),
    (SIGNATURE + bytes(20), "not a text file"))

# ---- settings --------------------------------------------------------------------------------

# (bytes, words of the message) of files that `dcrf solve --config` refuses
MALFORMED_SETTINGS = (
    (b"hello", "is not JSON: line 1"), (b"", "is not JSON: line 1"), (b"[1]", "is not an object"),
    (b'{"frobnicate": 1}', "'frobnicate' is not an option of solve"),
    (b'{"spatal": "3,1"}', "did you mean 'spatial'?"),
    (b'{"spatial": "3,"}', "--spatial: '3,' is not SIGMA[,W]"),
    (b'{"spatial": {"sigma": 3}}', "is not a text, a number or a list"),
    (b'{"spatial": []}', "is not a text, a number or a list"),
    (b'{"spatial": [[3, 1]]}', "is not a text, a number or a list"),
    (b'{"spatial": [' + b"1, " * 300 + b"1]}", "is not a text, a number or a list"),
    (b'{"spatial": "' + b"1" * 600 + b'"}', "is not a text, a number or a list"),
    (b'{"no-polish": "yes"}', "is a switch; give true or false"),
    (b'{"config": "other.json"}', "one is enough"),
    (b'{"preset": "nothing"}', "'nothing' is unknown"),
    (b'{"gap": 1, "gap": 2}', "is not JSON"), (b'{"settings": 3}', "is not an object"),
    (b'{"iterations": 99999999999999999999}', "is not JSON"),
    (b'{"iterations": 1.5}', "is not a whole number"), (b'{"gap": "\\u0000"}', "is not JSON"),
    (b'{"gap": "\xff"}', "is not JSON"), (b"[" * 3000, "is not JSON"))

# ---- dataset.json ----------------------------------------------------------------------------

# (bytes, words of the message)
MALFORMED_DATASETS = (
    (b"", "is not JSON: line 1"), (b"labels: 3", "is not JSON: line 1"),
    (b'{"labels": 3, "labels": 3}', "is not JSON"), (b"[3]", '"labels" is not a whole number'),
    (b"{}", '"labels" is not a whole number'), (b'{"labels": 0}', "whole number from 1 to"),
    (b'{"labels": -3}', "whole number from 1 to"), (b'{"labels": 70000}', "whole number from 1 to"),
    (b'{"labels": 3.0}', "whole number from 1 to"), (b'{"labels": "3"}', "whole number from 1 to"),
    (b'{"labels": 3, "void": -1}', "whole number from 0 to 65535"),
    (b'{"labels": 3, "void": 65536}', "whole number from 0 to 65535"),
    (b'{"labels": 3, "void": null}', "whole number from 0 to 65535"),
    (b'{"labels": 3, "unary": "energies"}', '"unary" is not an object'),
    (b'{"labels": 3, "unary": {"kind": "energy"}}', "none of energies"),
    (b'{"labels": 3, "unary": {"kind": 0}}', "none of energies"),
    (b'{"labels": 3, "unary": {"energy_per_unit": 0}}', "not a number above zero"),
    (b'{"labels": 3, "unary": {"energy_per_unit": "1"}}', "not a number above zero"),
    (b'{"labels": 3, "unary": {"energy_per_unit": 1e999}}', "is not JSON"))
