"""Small BMP and WebP files, good and malformed, with the standard library alone."""

import struct

# ---- BMP -------------------------------------------------------------------------------------

PLAIN, RLE8, RLE4, MASKS = 0, 1, 2, 3
HEADER, DESCRIPTION = 14, 40


def bmp(rows, bits=24, palette=None, top_down=False, compression=PLAIN, masks=None, description=DESCRIPTION,
        width=None, height=None, colours=None, raster=None):
    """Rows of (r, g, b), or of indices where there is a palette, or of whole pixels where there are masks."""
    body = b""
    for row in rows if top_down else rows[::-1]:
        if palette:
            text = "".join(format(v, "0%db" % bits) for v in row)
            text += "0" * (-len(text) % 8)
            line = bytes(int(text[i:i + 8], 2) for i in range(0, len(text), 8))
        elif masks or bits == 16:
            line = b"".join(struct.pack("<H" if bits == 16 else "<I", v) for v in row)
        else:
            line = b"".join(bytes((b, g, r)) + b"\x77" * (bits // 8 - 3) for r, g, b in row)
        body += line + bytes(-len(line) % 4)
    extra = b"".join(struct.pack("<I", m) for m in masks or ())
    table = b"".join(bytes((b, g, r, 0)) for r, g, b in palette or ())
    padding = bytes(max(0, description - DESCRIPTION - (len(extra) if description > DESCRIPTION else 0)))
    offset = HEADER + DESCRIPTION + len(extra) + len(padding) + len(table) if raster is None else raster
    size = len(rows) if height is None else height
    head = b"BM" + struct.pack("<IHHI", offset + len(body), 0, 0, offset)
    head += struct.pack("<IiiHHIIiiII", description, len(rows[0]) if width is None else width,
                        -size if top_down else size, 1, bits, compression, len(body), 0, 0,
                        len(palette or ()) if colours is None else colours, 0)
    return head + extra + padding + table + body


def malformed_bmp(width, height):
    rows = [[(9 * x, 5 * y, 7) for x in range(width)] for y in range(height)]
    good = bmp(rows)
    grey = [(v, v, v) for v in range(256)]
    indices = [[x for x in range(width)] for y in range(height)]
    bad = "bad BMP"
    return [
        ("bmp-header-cut", good[:30], "truncated"),
        ("bmp-raster-missing", good[:54], "truncated"),
        ("bmp-raster-cut", good[:-1], "truncated"),
        ("bmp-os2", good[:14] + struct.pack("<IHHHH", 12, width, height, 1, 24) + good[54:] + bytes(40),
         "before Windows 3"),
        ("bmp-width-zero", bmp(rows, width=0), "no pixels"),
        ("bmp-height-zero", bmp(rows, height=0), "no pixels"),
        ("bmp-width-negative", bmp(rows, width=-5), "negative"),
        ("bmp-most-negative", bmp(rows, height=-2**31), bad),
        ("bmp-absurd-size", bmp(rows, width=2**31 - 1, height=2**31 - 1), "2^31"),
        ("bmp-size-lies", bmp(rows, width=40000, height=40000), "truncated"),
        ("bmp-rle8", bmp(indices, 8, grey, compression=RLE8), "compressed (RLE)"),
        ("bmp-rle4", bmp(indices, 8, grey, compression=RLE4), "compressed (RLE)"),
        ("bmp-jpeg-inside", bmp(rows, compression=4), "compression is not known"),
        ("bmp-bits-0", bmp(rows, 24)[:28] + b"\0\0" + good[30:], "have not 1, 4, 8"),
        ("bmp-bits-2", good[:28] + b"\2\0" + good[30:], "have not 1, 4, 8"),
        ("bmp-bits-64", good[:28] + b"\x40\0" + good[30:], "have not 1, 4, 8"),
        ("bmp-palette-too-many", bmp(indices, 8, grey, colours=257), "more colours than its bits"),
        ("bmp-palette-huge", bmp(indices, 8, grey, colours=2**32 - 1), "more colours than its bits"),
        ("bmp-palette-missing", bmp(indices, 8, grey)[:100], "palette is not there"),
        ("palette-index", bmp([[255] * width] * height, 8, grey[:4]), "palette does not have"),
        ("bmp-raster-in-header", bmp(rows, raster=10), "truncated"),
        ("bmp-raster-beyond", bmp(rows, raster=10**6), "truncated"),
        ("bmp-raster-largest", bmp(rows, raster=2**32 - 1000), "truncated"),
        ("bmp-description-huge", bmp(indices, 8, grey)[:14] + b"\xff\0\0\0" + bmp(indices, 8, grey)[18:],
         "bad BMP"),
        ("bmp-masks-zero", bmp([[0] * width] * height, 32, masks=(0, 0, 0), compression=MASKS), "bits of its colours"),
        ("bmp-masks-holes", bmp([[0] * width] * height, 32, masks=(0x5, 0xff00, 0xff0000), compression=MASKS),
         "bits of its colours"),
        ("bmp-masks-too-high", bmp([[0] * width] * height, 16, masks=(0xff0000, 0x3e0, 0x1f), compression=MASKS),
         "bits of its colours"),
        ("bmp-masks-of-24", bmp(rows, 24, compression=MASKS), "header is broken"),
        ("bmp-masks-of-8", bmp(indices, 8, grey, compression=MASKS), "header is broken"),
    ]


# ---- WebP ------------------------------------------------------------------------------------

# The picture of case.py without loss, and 16 x 16 pixels near (200, 100, 50) with.
LOSSLESS_WEBP = bytes.fromhex("5249464630000000574542505650384c240000002f05000100998ce87f6ca2f0d1ff8082b66d98b6db688c3fcf0f6"
                              "1500639260046357903")
LOSSY_WEBP = bytes.fromhex("524946463e000000574542505650382032000000d001009d012a1000100000c01225a00274ba01f80003b000feda26f"
                           "feef37ed3d7b4f5fd4cfff8ca9f203fe32a7fc5cc0000")


def malformed_webp():
    bad = "bad WebP"
    extended = b"VP8X" + struct.pack("<I", 10) + b"\x02\0\0\0" + b"\5\0\0\4\0\0"
    animated = b"RIFF" + struct.pack("<I", 4 + len(extended)) + b"WEBP" + extended
    cases = [("webp-nothing", LOSSLESS_WEBP[:12], bad), ("webp-animated", animated, "animated"),
             ("webp-chunk", LOSSLESS_WEBP[:12] + b"JUNK" + LOSSLESS_WEBP[16:], bad),
             ("webp-signature", LOSSLESS_WEBP[:20] + b"\0" + LOSSLESS_WEBP[21:], bad),
             ("webp-version", LOSSLESS_WEBP[:24] + b"\xff" + LOSSLESS_WEBP[25:], bad),
             ("webp-lossy-start", LOSSY_WEBP[:23] + b"\0\0\0" + LOSSY_WEBP[26:], bad),
             ("webp-lossy-no-width", LOSSY_WEBP[:26] + b"\0\0" + LOSSY_WEBP[28:], bad)]
    for cut in range(14, len(LOSSLESS_WEBP) - 2, 4):
        cases.append(("webp-cut-%d" % cut, LOSSLESS_WEBP[:cut], bad))
    for cut in range(14, len(LOSSY_WEBP) - 12, 6):
        cases.append(("webp-lossy-cut-%d" % cut, LOSSY_WEBP[:cut], bad))
    return cases
