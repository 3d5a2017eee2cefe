"""Small NIfTI files made by hand, good and malformed, with the standard library alone."""

import gzip
import math
import struct

U8, I16, I32, F32, COMPLEX, F64, RGB24, I8, U16, U32, I64, U64 = (2, 4, 8, 16, 32, 64, 128, 256,
                                                                  512, 768, 1024, 1280)
CODE = {U8: "B", I16: "h", I32: "i", F32: "f", F64: "d", I8: "b", U16: "H", U32: "I", I64: "q",
        U64: "Q"}
BITS = {U8: 8, I16: 16, I32: 32, F32: 32, COMPLEX: 64, F64: 64, RGB24: 24, I8: 8, U16: 16, U32: 32,
        I64: 64, U64: 64}
METRES, MILLIMETRES, MICRONS = 1, 2, 3


def nifti_header(dim, datatype=F32, spacing=(1, 1, 1), slope=1.0, intercept=0.0, offset=352.0,
                 units=MILLIMETRES, magic=b"n+1\0", order="<", size=348, bits=None):
    dims = list(dim) + [1] * (8 - len(dim))
    pixdim = [1.0] + list(spacing) + [0.0] * (7 - len(spacing))
    data = struct.pack(order + "i", size) + bytes(36) + struct.pack(order + "8h", *dims)
    data += bytes(14) + struct.pack(order + "hhh", datatype,
                                    BITS.get(datatype, 8) if bits is None else bits, 0)
    data += struct.pack(order + "8f", *pixdim)
    data += struct.pack(order + "fff", offset, slope, intercept) + bytes(3) + bytes([units])
    data += bytes(344 - len(data)) + magic
    return data


def nifti2_header(dim, datatype=F32, spacing=(1, 1, 1), slope=1.0, intercept=0.0, offset=544,
                  order="<"):
    dims = list(dim) + [1] * (8 - len(dim))
    pixdim = [1.0] + list(spacing) + [0.0] * (7 - len(spacing))
    data = struct.pack(order + "i", 540) + b"n+2\0\r\n\x1a\n"
    data += struct.pack(order + "hh8q", datatype, BITS[datatype], *dims) + bytes(24)
    data += struct.pack(order + "8d", *pixdim) + struct.pack(order + "qdd", offset, slope, intercept)
    data += bytes(500 - len(data)) + struct.pack(order + "i", MILLIMETRES)
    return data + bytes(540 - len(data))


def nifti(values, size, datatype=F32, order="<", version=1, **more):
    """A volume; `size` is x, y, z and perhaps channels, and x varies fastest."""
    make = nifti_header if version == 1 else nifti2_header
    head = make([len(size)] + list(size), datatype, order=order, **more)
    body = struct.pack(order + "%d%s" % (len(values), CODE[datatype]), *values)
    return head + bytes(4) + body


def read_nifti(data):
    """(size, spacing, datatype, values) as the command writes them."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    dim = struct.unpack("<8h", data[40:56])
    datatype = struct.unpack("<h", data[70:72])[0]
    assert data[344:348] == b"n+1\0" and struct.unpack("<f", data[108:112])[0] == 352
    assert struct.unpack("<h", data[72:74])[0] == BITS[datatype]
    assert struct.unpack("<ff", data[112:120]) == (1, 0)
    body = data[352:]
    count = len(body) * 8 // BITS[datatype]
    values = struct.unpack("<%d%s" % (count, CODE[datatype]), body)
    return dim[1:1 + dim[0]], struct.unpack("<3f", data[80:92]), datatype, list(values)


def malformed_nifti(size):
    width, height, depth = size
    count = width * height * depth
    values = [float(i) for i in range(count)]
    good = nifti(values, size)
    packed = gzip.compress(good)
    dim = [3, *size]
    body = bytes(4 + 4 * count)
    broken = "header is broken"

    def with_header(*arguments, **more):
        return nifti_header(*arguments, **more) + body

    def with_values(*special):
        return nifti(list(special) + values[len(special):], size)

    return [
        ("header-cut", good[:200], "truncated"),
        ("header-only", good[:348], "truncated"),
        ("size-field-only", good[:4], "truncated"),
        ("data-cut", good[:-1], "truncated"),
        ("data-missing", good[:352], "truncated"),
        ("no-magic", with_header(dim, magic=bytes(4)), "not a NIfTI"),
        ("magic-of-pair", with_header(dim, magic=b"ni1\0"), "one of a pair"),
        ("magic-of-pair-2", struct.pack("<i", 540) + b"ni2\0\r\n\x1a\n" + bytes(600),
         "one of a pair"),
        ("magic-unknown", with_header(dim, magic=b"n+9\0"), "not a NIfTI"),
        ("axes-none", with_header([0, *size]), "broken"),
        ("axes-nine", with_header([9, *size]), "broken"),
        ("axes-negative", with_header([-3, *size]), "broken"),
        ("axis-zero", with_header([3, 0, height, depth]), "broken"),
        ("axis-negative", with_header([3, -5, height, depth]), "broken"),
        ("five-axes", with_header([5, 2, 2, 2, 1, 2]), "more than four axes"),
        ("absurd-size", with_header([3, 32767, 32767, 32767]), "2^31"),
        ("size-lies", with_header([3, 1000, 1000, 1000]), "truncated"),
        ("size-lies-a-little", with_header([3, width, height, depth + 1]), "truncated"),
        ("offset-beyond", with_header(dim, offset=1e9), "truncated"),
        ("offset-in-header", with_header(dim, offset=12), broken),
        ("offset-infinite", with_header(dim, offset=math.inf), broken),
        ("offset-nan", with_header(dim, offset=math.nan), broken),
        ("spacing-zero", with_header(dim, spacing=(0, 1, 1)), broken),
        ("spacing-nan", with_header(dim, spacing=(1, math.nan, 1)), broken),
        ("spacing-infinite", with_header(dim, spacing=(1, 1, math.inf)), broken),
        ("slope-nan", with_header(dim, slope=math.nan), broken),
        ("intercept-infinite", with_header(dim, intercept=math.inf), broken),
        ("complex", with_header(dim, COMPLEX), "NIfTI type 32"),
        ("rgb", with_header(dim, RGB24), "NIfTI type 128"),
        ("type-none", with_header(dim, 0), "NIfTI type 0"),
        ("type-unknown", with_header(dim, 77), "NIfTI type 77"),
        ("order-lies", struct.pack(">i", 348) + good[4:], broken),
        ("header-size-lies", struct.pack("<i", 349) + good[4:], broken),
        ("nan", with_values(1.0, math.nan), "nan at x = 1, y = 0, z = 0"),
        ("infinity", with_values(math.inf), "inf at x = 0, y = 0, z = 0"),
        ("beyond-float", nifti([1e300] * count, size, F64), "inf at"),
        ("gzip-only", b"\x1f\x8b", "gzip"),
        ("gzip-header", packed[:10], "gzip"),
        ("gzip-method", b"\x1f\x8b\x07" + packed[3:], "gzip"),
        ("gzip-cut", packed[:-20], "gzip"),
        ("gzip-no-checksum", packed[:-8], "gzip"),
        ("gzip-checksum", packed[:-8] + b"abcdefgh", "gzip"),
        ("gzip-garbled", packed[:40] + b"\xff" * 30 + packed[70:], "gzip"),
        ("gzip-of-nothing", gzip.compress(b""), "truncated"),
        ("gzip-of-text", gzip.compress(b"hello, world\n" * 60), "not a NIfTI"),
        ("gzip-of-a-cut-file", gzip.compress(good[:-4]), "truncated"),
        ("gzip-size-lies", gzip.compress(with_header([3, 1000, 1000, 1000])), "more voxels"),
        ("nifti-2-cut", nifti(values, size, version=2)[:500], "truncated"),
        ("nifti-2-absurd", nifti2_header([3, 2**40, 2**40, 2**40]) + body, "2^31"),
        ("nifti-2-offset", nifti2_header(dim, offset=2**62) + body, broken),
    ]
