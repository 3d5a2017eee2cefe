"""Small JPEG, PNM and TIFF files made by hand, good and malformed, with the standard library alone."""

import struct
import zlib

# ---- JPEG ------------------------------------------------------------------------------------


def segment(marker, data, length=None):
    size = len(data) + 2 if length is None else length
    return bytes((0xff, marker)) + struct.pack(">H", size) + data


# Steps of 8 make the first coefficient of a block of one value v exactly v - 128.
DQT = segment(0xdb, b"\0" + b"\x08" * 64)
# Nine categories of first coefficients, in codes of four bits; one code, 0, for "nothing follows".
DHT_DC = segment(0xc4, b"\x00" + bytes([0, 0, 0, 9] + [0] * 12) + bytes(range(9)))
DHT_AC = segment(0xc4, b"\x10" + bytes([1] + [0] * 15) + b"\0")
ADOBE_AS_STORED = segment(0xee, b"Adobe\0\x64\0\0\0\0\0")
SOI, EOI = b"\xff\xd8", b"\xff\xd9"


def sof(width, height, components, precision=8, marker=0xc0, sampling=0x11, table=0):
    data = struct.pack(">BHHB", precision, height, width, components)
    for c in range(components):
        data += bytes((c + 1, sampling, table))
    return segment(marker, data)


def sos(components, table=0):
    return segment(0xda, bytes([components]) +
                   b"".join(bytes((c + 1, table)) for c in range(components)) + b"\0\x3f\0")


def scan(blocks, components):
    """Entropy-coded blocks, each a tuple of one value a component."""
    bits, before = "", [128] * components
    for block in blocks:
        for c, value in enumerate(block):
            step = value - before[c]
            before[c] = value
            size = abs(step).bit_length()
            bits += format(size, "04b")
            if size:
                bits += format(step if step > 0 else step + (1 << size) - 1, "0%db" % size)
            bits += "0"
    bits += "1" * (-len(bits) % 8)
    data = bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))
    return data.replace(b"\xff", b"\xff\0")


def jpeg_parts(blocks, width, height):
    components = len(blocks[0])
    tables = DQT + DHT_DC + DHT_AC
    colours = ADOBE_AS_STORED if components == 3 else b""
    return (SOI + colours, tables, sof(width, height, components), sos(components),
            scan(blocks, components), EOI)


def jpeg(blocks, blocks_across):
    """Blocks of 8 x 8 pixels, each of one colour (r, g, b) or grey (v,)."""
    return b"".join(jpeg_parts(blocks, 8 * blocks_across, 8 * len(blocks) // blocks_across))


def malformed_jpeg():
    blocks = [(10, 20, 30), (200, 100, 50), (0, 255, 128), (77, 77, 77)]
    start, tables, frame, head, data, end = jpeg_parts(blocks, 16, 16)
    good = start + tables + frame + head + data + end
    bad = "bad JPEG"
    four = [b + (9,) for b in blocks]

    def with_frame(changed):
        return start + tables + changed + head + data + end

    return [
        ("start-only", SOI + b"\xff", bad),
        ("no-frame", start + tables + head + data + end, bad),
        ("nothing-but-end", SOI + EOI, bad),
        ("text-after-start", SOI + b"\xffhello, world" + bytes(40), bad),
        ("segment-length-zero", start + segment(0xdb, b"\0" + b"\x08" * 64, 0) + good[2:], bad),
        ("segment-length-lies", SOI + segment(0xdb, b"\0" * 65, 0xffff) + frame, bad),
        ("header-cut", good[:len(start) + 20], bad),
        ("frame-cut", good[:len(start + tables) + 8], bad),
        ("data-cut", start + tables + frame + head + data[:-4], bad),
        ("data-missing", start + tables + frame + head, bad),
        ("no-end", good[:-2], bad),
        ("data-ends-early", start + tables + frame + head + data[:3] + end, bad),
        ("marker-in-data", start + tables + frame + head + data[:2] + b"\xff\xd3" + data[2:] + end,
         bad),
        ("width-zero", with_frame(sof(0, 16, 3)), bad),
        ("height-zero", with_frame(sof(16, 0, 3)), bad),
        ("size-lies", with_frame(sof(40000, 40000, 3)), "more pixels"),
        ("size-largest", with_frame(sof(65500, 65500, 3)), "more than 2^31"),
        ("size-beyond", with_frame(sof(65535, 65535, 3)), bad),
        ("size-lies-a-little", with_frame(sof(16, 25, 3)), bad),
        ("no-quantization", start + DHT_DC + DHT_AC + frame + head + data + end, bad),
        ("no-codes", start + DQT + frame + head + data + end, bad),
        ("codes-too-many", start + tables + segment(0xc4, b"\0" + bytes([3] + [0] * 15) +
                                                    b"\0\1\2") + frame + head + data + end, bad),
        ("codes-table-9", SOI + segment(0xc4, b"\x09" + bytes([1] + [0] * 15) + b"\0") +
         tables + frame + head + data + end, bad),
        ("quantization-table-9", SOI + segment(0xdb, b"\x09" + b"\x08" * 64) + tables + frame, bad),
        ("table-9-used", with_frame(sof(16, 16, 3, table=9)), bad),
        ("twelve-bits", with_frame(sof(16, 16, 3, precision=12)), bad),
        ("components-none", with_frame(sof(16, 16, 0)), bad),
        ("components-two", b"".join(jpeg_parts([b[:2] for b in blocks], 16, 16)), "neither grey"),
        ("components-many", with_frame(sof(16, 16, 20)), bad),
        ("printer-colours", b"".join(jpeg_parts(four, 16, 16)), "CMYK"),
        ("sampling-zero", with_frame(sof(16, 16, 3, sampling=0)), bad),
        ("sampling-nine", with_frame(sof(16, 16, 3, sampling=0x99)), bad),
        ("lossless", with_frame(sof(16, 16, 3, marker=0xc3)), bad),
        ("frame-twice", start + tables + frame + frame + head + data + end, bad),
        ("scan-of-others", start + tables + frame + segment(0xda, b"\1\x09\0\0\x3f\0") + data + end,
         bad),
        ("bad-code", start + tables + frame + head + b"\xf7" * 40 + end, bad),
    ]


# ---- PNM -------------------------------------------------------------------------------------


def pnm(pixels, kind, largest=255):
    """P1 to P6 from rows of pixels, each a tuple of samples."""
    height, width = len(pixels), len(pixels[0])
    head = "P%d\n# a comment\n%d %d\n" % (kind, width, height)
    if kind not in (1, 4):
        head += "%d\n" % largest
    rows = [[s for p in row for s in p] for row in pixels]
    if kind == 1:
        return (head + "".join("".join(map(str, row)) + "\n" for row in rows)).encode()
    if kind in (2, 3):
        return (head + "".join(" ".join(map(str, row)) + "\n" for row in rows)).encode()
    if kind == 4:
        bits = ["".join(map(str, row)) + "0" * (-width % 8) for row in rows]
        body = bytes(int(row[i:i + 8], 2) for row in bits for i in range(0, len(row), 8))
    elif largest < 256:
        body = bytes(s for row in rows for s in row)
    else:
        body = b"".join(struct.pack(">%dH" % len(row), *row) for row in rows)
    return head.encode() + body


def malformed_pnm(width, height):
    n = width * height
    size = b"%d %d" % (width, height)
    grey, colour = bytes(n), bytes(3 * n)
    bits = bytes((width + 7) // 8 * height)
    numbers = b" ".join([b"7"] * n)
    return [
        ("magic-only", b"P6\n", "truncated"),
        ("no-height", b"P6\n6", "truncated"),
        ("no-largest", b"P6\n" + size, "truncated"),
        ("no-raster", b"P6\n" + size + b"\n255", "truncated"),
        ("raster-empty", b"P6\n" + size + b"\n255\n", "truncated"),
        ("raster-cut", b"P6\n" + size + b"\n255\n" + colour[1:], "truncated"),
        ("raster-long", b"P6\n" + size + b"\n255\n" + colour + b"\0", "after its raster"),
        ("grey-raster-cut", b"P5\n" + size + b"\n255\n" + grey[1:], "truncated"),
        ("wide-raster-cut", b"P5\n" + size + b"\n256\n" + grey, "truncated"),
        ("bits-cut", b"P4\n" + size + b"\n" + bits[1:], "truncated"),
        ("bits-long", b"P4\n" + size + b"\n" + bits + b"\0", "after its raster"),
        ("width-zero", b"P6\n0 5\n255\n", "no pixels"),
        ("height-zero", b"P6\n5 0\n255\n", "no pixels"),
        ("width-negative", b"P6\n-5 5\n255\n" + colour, "not a number"),
        ("width-float", b"P6\n5.0 5\n255\n" + colour, "not a number"),
        ("width-word", b"P6\nfive 5\n255\n" + colour, "not a number"),
        ("absurd-size", b"P6\n65536 65536\n255\n" + colour, "2^31"),
        ("absurd-number", b"P6\n" + b"9" * 40 + b" 5\n255\n" + colour, "absurdly large"),
        ("size-wraps", b"P6\n4294967295 4294967295\n255\n" + colour, "2^31"),
        ("size-lies", b"P6\n40000 40000\n255\n" + colour, "truncated"),
        ("largest-zero", b"P6\n" + size + b"\n0\n" + colour, "from 1 to 65535"),
        ("largest-huge", b"P6\n" + size + b"\n65536\n" + colour + colour, "from 1 to 65535"),
        ("largest-word", b"P6\n" + size + b"\nmax\n" + colour, "not a number"),
        ("sample-beyond", b"P5\n" + size + b"\n9\n" + b"\x0a" * n, "above its largest"),
        ("comment-open", b"P6\n# a comment that never ends", "truncated"),
        ("comment-eats-raster", b"P6\n" + size + b"\n255#" + colour, "no blank"),
        ("plain-cut", b"P2\n" + size + b"\n255\n" + numbers[:-2], "truncated"),
        ("plain-long", b"P2\n" + size + b"\n255\n" + numbers + b" 7", "after its raster"),
        ("plain-word", b"P2\n" + size + b"\n255\n" + numbers[:-1] + b"x", "not a number"),
        ("plain-negative", b"P2\n" + size + b"\n255\n-" + numbers, "not a number"),
        ("plain-beyond", b"P2\n" + size + b"\n6\n" + numbers, "above its largest"),
        ("plain-bits-two", b"P1\n" + size + b"\n" + b"2" * n, "not a bit"),
        ("plain-bits-cut", b"P1\n" + size + b"\n" + b"1" * (n - 1), "truncated"),
        ("plain-bits-blank", b"P1\n" + size + b"\n" + b"1" * (n - 1) + b"\n\n\n", "truncated"),
        ("plain-is-raw", b"P3\n" + size + b"\n255\n" + colour + colour, "not a number"),
    ]


# ---- TIFF ------------------------------------------------------------------------------------

BYTE, ASCII, SHORT, LONG, DOUBLE = 1, 2, 3, 4, 12
FIELD_BYTES = {BYTE: 1, ASCII: 1, SHORT: 2, LONG: 4, DOUBLE: 8}
FIELD_CODE = {BYTE: "B", ASCII: "B", SHORT: "H", LONG: "I", DOUBLE: "d"}
WIDTH_TAG, HEIGHT_TAG, BITS_TAG, COMPRESSION_TAG, PHOTOMETRIC_TAG = 256, 257, 258, 259, 262
OFFSETS_TAG, CHANNELS_TAG, ROWS_TAG, COUNTS_TAG, PLANAR_TAG = 273, 277, 278, 279, 284
PALETTE_TAG, TILE_WIDTH_TAG, TILE_HEIGHT_TAG = 320, 322, 323
TILE_OFFSETS_TAG, TILE_COUNTS_TAG, EXTRA_TAG, FORMAT_TAG = 324, 325, 338, 339
WHITE_IS_ZERO, BLACK_IS_ZERO, TIFF_RGB, TIFF_PALETTE, SEPARATED, YCBCR = 0, 1, 2, 3, 5, 6


def tiff_file(fields, blocks, order="<", offsets_tag=OFFSETS_TAG, counts_tag=COUNTS_TAG):
    """A file from {tag: (type, values)} and strips or tiles. Values given as None are left out, and
    so can the places of the blocks be, or be lies."""
    body = b"".join(blocks)
    places, at = [], 8
    for block in blocks:
        places.append(at)
        at += len(block)
    at += at % 2
    body += bytes(at - 8 - len(body))
    fields = {offsets_tag: (LONG, places), counts_tag: (LONG, [len(b) for b in blocks]), **fields}
    fields = {tag: field for tag, field in fields.items() if field is not None}
    entries, extra = b"", b""
    extra_at = at + 2 + 12 * len(fields) + 4
    for tag in sorted(fields):
        kind, values = fields[tag]
        data = struct.pack(order + "%d%s" % (len(values), FIELD_CODE[kind]), *values)
        if len(data) > 4:
            place = struct.pack(order + "I", extra_at + len(extra))
            extra += data + bytes(len(data) % 2)
        else:
            place = data + bytes(4 - len(data))
        entries += struct.pack(order + "HHI", tag, kind, len(values)) + place
    magic = b"II*\0" if order == "<" else b"MM\0*"
    return (magic + struct.pack(order + "I", at) + body + struct.pack(order + "H", len(fields)) +
            entries + bytes(4) + extra)


def packbits(data):
    return b"".join(bytes((len(data[i:i + 128]) - 1,)) + data[i:i + 128]
                    for i in range(0, len(data), 128))


COMPRESS = {1: lambda data: data, 8: zlib.compress, 32946: zlib.compress, 32773: packbits}


# Of samples that are not unsigned: bits and format by the code that struct has for them.
DEEP = {"b": (8, 2), "h": (16, 2), "i": (32, 2), "I": (32, 1), "f": (32, 3), "d": (64, 3)}


def deep_fields(code, channels):
    return {BITS_TAG: (SHORT, [DEEP[code][0]] * channels), FORMAT_TAG: (SHORT, [DEEP[code][1]] * channels)}


def pack_samples(samples, bits, order):
    if bits in DEEP:
        return struct.pack(order + "%d%s" % (len(samples), bits), *samples)
    if bits == 16:
        return struct.pack(order + "%dH" % len(samples), *samples)
    text = "".join(format(s, "0%db" % bits) for s in samples)
    text += "0" * (-len(text) % 8)
    return bytes(int(text[i:i + 8], 2) for i in range(0, len(text), 8))


def tiff_fields(width, height, channels, bits, photometric, compression):
    return {WIDTH_TAG: (LONG, [width]), HEIGHT_TAG: (LONG, [height]),
            BITS_TAG: (SHORT, [bits] * channels), COMPRESSION_TAG: (SHORT, [compression]),
            PHOTOMETRIC_TAG: (SHORT, [photometric]), CHANNELS_TAG: (SHORT, [channels])}


def tiff(pixels, bits=8, photometric=TIFF_RGB, order="<", compression=1, rows=2, tile=None,
         planar=False, palette=None, **more):
    """A picture from rows of pixels; in strips of `rows`, or in tiles of (width, height). `bits` may be a code of DEEP."""
    height, width, channels = len(pixels), len(pixels[0]), len(pixels[0][0])
    fields = tiff_fields(width, height, channels, bits, photometric, compression)
    if bits in DEEP:
        fields.update(deep_fields(bits, channels))
    if palette:
        fields[PALETTE_TAG] = (SHORT, [257 * c[k] for k in range(3) for c in palette])
    if planar:
        fields[PLANAR_TAG] = (SHORT, [2])
    if channels in (2, 4):
        fields[EXTRA_TAG] = (SHORT, [2])
    planes = [[c] for c in range(channels)] if planar else [list(range(channels))]
    across, down = tile or (width, rows)
    blank = (0,) * channels
    blocks = []
    for plane in planes:
        for y0 in range(0, height, down):
            for x0 in range(0, width, across):
                lines = range(y0, y0 + down if tile else min(y0 + down, height))
                data = b""
                for y in lines:
                    row = [pixels[y][x] if y < height and x < width else blank
                           for x in range(x0, x0 + across)]
                    data += pack_samples([p[c] for p in row for c in plane], bits, order)
                blocks.append(COMPRESS[compression](data))
    if tile:
        fields[TILE_WIDTH_TAG] = (SHORT, [across])
        fields[TILE_HEIGHT_TAG] = (SHORT, [down])
        fields.update(more.get("fields", {}))
        return tiff_file(fields, blocks, order, TILE_OFFSETS_TAG, TILE_COUNTS_TAG)
    fields[ROWS_TAG] = (LONG, [rows])
    fields.update(more.get("fields", {}))
    return tiff_file(fields, blocks, order)


def malformed_tiff(width, height):
    pixels = [[(10 * x, 20 * y, 30) for x in range(width)] for y in range(height)]
    good = tiff(pixels)
    directory = struct.unpack("<I", good[4:8])[0]
    bad = "bad TIFF"

    def with_fields(fields, **more):
        return tiff(pixels, fields=fields, **more)

    return [
        ("magic-only", b"II*\0", bad),
        ("half-offset", good[:6], bad),
        ("directory-beyond", good[:4] + struct.pack("<I", 2**31) + good[8:], bad),
        ("directory-in-header", good[:4] + bytes(4) + good[8:], bad),
        ("directory-cut", good[:directory + 20], bad),
        ("directory-empty", good[:directory] + bytes(40), bad),
        ("directory-count-lies", good[:directory] + b"\xff\xff" + good[directory + 2:], bad),
        ("order-lies", b"MM\0*" + good[4:], bad),
        ("big-tiff-cut", b"II+\0\x08\0\0\0" + bytes(4), bad),
        ("width-missing", with_fields({WIDTH_TAG: None}), bad),
        ("width-zero", with_fields({WIDTH_TAG: (LONG, [0])}), bad),
        ("height-zero", with_fields({HEIGHT_TAG: (LONG, [0])}), bad),
        ("absurd-size", with_fields({WIDTH_TAG: (LONG, [2**31]), HEIGHT_TAG: (LONG, [2**31])}),
         bad),
        ("size-lies", with_fields({WIDTH_TAG: (LONG, [40000]), HEIGHT_TAG: (LONG, [40000])}),
         "more pixels"),
        ("size-lies-in-bits", tiff_file(tiff_fields(3604, 31506, 1, 1, 1, 1), [bytes(16)]),
         "more pixels"),
        ("width-lies-a-little", with_fields({WIDTH_TAG: (LONG, [width + 2])}), bad),
        ("height-lies-a-little", with_fields({HEIGHT_TAG: (LONG, [height + 9])}), bad),
        ("strip-offset-beyond", with_fields({OFFSETS_TAG: (LONG, [2**30] * 3)}), bad),
        ("strip-count-short", with_fields({COUNTS_TAG: (LONG, [1] * 3)}, compression=8), bad),
        ("strip-count-huge", with_fields({COUNTS_TAG: (LONG, [2**31] * 3)},
                                         compression=8), bad),
        ("strips-missing", with_fields({OFFSETS_TAG: None, COUNTS_TAG: None}), bad),
        ("strip-data-cut", with_fields({}, compression=8)[:30], bad),
        ("deflate-broken", tiff_file({**tiff_fields(width, height, 3, 8, TIFF_RGB, 8),
                                      ROWS_TAG: (LONG, [height])}, [b"not a zlib stream"]), bad),
        ("deflate-short", tiff_file({**tiff_fields(width, height, 3, 8, TIFF_RGB, 8),
                                     ROWS_TAG: (LONG, [height])}, [zlib.compress(b"12345")]), bad),
        ("packbits-short", tiff_file({**tiff_fields(width, height, 3, 8, TIFF_RGB, 32773),
                                      ROWS_TAG: (LONG, [height])}, [b"\x05ab"]), bad),
        ("compression-unknown", with_fields({COMPRESSION_TAG: (SHORT, [999])}), bad),
        ("compression-old-jpeg", with_fields({COMPRESSION_TAG: (SHORT, [6])}), bad),
        ("bits-three", with_fields({BITS_TAG: (SHORT, [3] * 3)}), bad),
        ("bits-thirty-two", with_fields({BITS_TAG: (SHORT, [32] * 3)}), bad),
        ("bits-differ", with_fields({BITS_TAG: (SHORT, [8, 16, 8])}), bad),
        ("half-floats", tiff([[(1, 2, 3)] * width] * height, 16, fields={FORMAT_TAG: (SHORT, [3] * 3)}),
         "unusual size"),
        ("complex", with_fields({FORMAT_TAG: (SHORT, [5] * 3)}), "complex"),
        ("floats-cut", tiff([[(1.0, 2.0, 3.0)] * width] * height, "f")[:60], bad),
        ("floats-without-data", tiff([[(float("inf"),) * 3] * width] * height, "d"), "has no data"),
        ("photometric-missing", with_fields({PHOTOMETRIC_TAG: None}), bad),
        ("photometric-unknown", with_fields({PHOTOMETRIC_TAG: (SHORT, [99])}), bad),
        ("printer-colours", tiff([[(1, 2, 3, 4)] * width] * height, photometric=SEPARATED),
         "CMYK"),
        ("ycbcr", with_fields({PHOTOMETRIC_TAG: (SHORT, [YCBCR])}), bad),
        ("rgb-of-two", tiff([[(1, 2)] * width] * height), bad),
        ("channels-many", with_fields({CHANNELS_TAG: (SHORT, [60000])}), bad),
        ("channels-none", with_fields({CHANNELS_TAG: (SHORT, [0])}), bad),
        ("tile-zero", tiff(pixels, tile=(16, 16), fields={TILE_WIDTH_TAG: None}), bad),
        ("tile-cut", tiff(pixels, tile=(16, 16), compression=8,
                          fields={TILE_COUNTS_TAG: (LONG, [7])}), bad),
        ("tile-beyond", tiff(pixels, tile=(16, 16), fields={TILE_OFFSETS_TAG: (LONG, [2**29])}),
         bad),
    ]


def read_tiff(data):
    """(fields, rows of samples) of a little-endian TIFF with one channel, as the command writes it."""
    assert data[:4] == b"II*\0"
    at = struct.unpack("<I", data[4:8])[0]
    fields = {}
    for i in range(struct.unpack("<H", data[at:at + 2])[0]):
        tag, kind, count = struct.unpack("<HHI", data[at + 2 + 12 * i:at + 10 + 12 * i])
        size = FIELD_BYTES[kind] * count
        place = at + 10 + 12 * i if size <= 4 else struct.unpack("<I", data[at + 10 + 12 * i:at + 14 + 12 * i])[0]
        fields[tag] = struct.unpack("<%d%s" % (count, FIELD_CODE[kind]), data[place:place + size])
    width, height, bits = fields[WIDTH_TAG][0], fields[HEIGHT_TAG][0], fields[BITS_TAG][0]
    tiled = TILE_WIDTH_TAG in fields
    across, down = (fields[TILE_WIDTH_TAG][0], fields[TILE_HEIGHT_TAG][0]) if tiled else (width, fields[ROWS_TAG][0])
    offsets, counts = (TILE_OFFSETS_TAG, TILE_COUNTS_TAG) if tiled else (OFFSETS_TAG, COUNTS_TAG)
    rows = [[0] * width for _ in range(height)]
    for i, (place, size) in enumerate(zip(fields[offsets], fields[counts])):
        block = data[place:place + size]
        if fields[COMPRESSION_TAG][0] == 8:
            block = zlib.decompress(block)
        samples = block if bits == 8 else struct.unpack("<%dH" % (len(block) // 2), block)
        columns = -(-width // across)
        for k, sample in enumerate(samples):
            x, y = i % columns * across + k % across, i // columns * down + k // across
            if x < width and y < height:
                rows[y][x] = sample
    return fields, rows
