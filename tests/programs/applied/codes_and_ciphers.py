"""Ciphers, checksums, error-correcting codes and compression with integers and bits."""

import math

import numpy as np

from tests.programs.table import program


@program(
    lambda rng: (
        rng.integers(0, 2**32, size=4, dtype=np.uint32),
        rng.integers(0, 2**32, size=2, dtype=np.uint32),
    )
)
def tea_cipher(key, block):
    """The tiny encryption algorithm, which overflows on purpose."""
    v0, v1 = block
    delta, s = np.uint32(0x9E3779B9), np.uint32(0)
    with np.errstate(over="ignore"):
        for _ in range(8):
            s += delta
            v0 += ((v1 << np.uint32(4)) + key[0]) ^ (v1 + s) ^ ((v1 >> np.uint32(5)) + key[1])
            v1 += ((v0 << np.uint32(4)) + key[2]) ^ (v0 + s) ^ ((v0 >> np.uint32(5)) + key[3])
    return np.array([v0, v1], dtype=np.uint32)


@program(lambda rng: (int(rng.integers(1, 2**31)),))
def xorshift(seed):
    """A generator of random numbers by shifts."""
    x = np.uint32(seed)
    out = np.empty(5, dtype=np.uint32)
    for i in range(5):
        x ^= x << np.uint32(13)
        x ^= x >> np.uint32(17)
        x ^= x << np.uint32(5)
        out[i] = x
    return out, out / 2**32


@program(lambda rng: (rng.integers(0, 256, size=6, dtype=np.uint8),), branches=True)
def crc8(data):
    """A checksum of bytes, bit by bit."""
    crc = 0
    for byte in data:
        crc ^= int(byte)
        for _ in range(8):
            crc = ((crc << 1) ^ 0x07) & 0xFF if crc & 0x80 else (crc << 1) & 0xFF
    return crc, f"{crc:02x}"


@program(lambda rng: (rng.integers(0, 256, size=6, dtype=np.uint8),))
def crc_table(data):
    """A checksum by a table of words."""
    table = np.zeros(256, dtype=np.uint32)
    for i in range(256):
        c = np.uint32(i)
        for _ in range(8):
            c = np.uint32((c >> 1) ^ 0xEDB88320) if c & 1 else np.uint32(c >> 1)
        table[i] = c
    crc = np.uint32(0xFFFFFFFF)
    for b in data:
        crc = table[(crc ^ b) & 0xFF] ^ (crc >> np.uint32(8))
    return crc ^ np.uint32(0xFFFFFFFF)


@program(lambda rng: (int(rng.integers(2, 50)), int(rng.integers(50, 200))), branches=True)
def rsa_toy(m, e_start):
    """Encryption by a modular power."""
    p, q = 61, 53
    n, phi = p * q, (p - 1) * (q - 1)
    e = e_start
    while math.gcd(e, phi) != 1:
        e += 1
    d = pow(e, -1, phi)
    c = pow(m, e, n)
    assert pow(c, d, n) == m
    return c, d


@program(lambda rng: (rng.integers(0, 26, size=8), int(rng.integers(1, 25))), branches=True)
def caesar(letters, shift):
    """A shifted alphabet and counts of its letters."""
    enc = (letters + shift) % 26
    text = "".join(chr(65 + c) for c in enc)
    counts = np.bincount(enc, minlength=26)
    return text, counts, (enc - shift) % 26


@program(lambda rng: (rng.integers(0, 2, size=6),), branches=True)
def convolutional_code(bits):
    """A convolutional code by shift registers."""
    state, out = 0, []
    for b in bits:
        reg = (int(b) << 2) | state
        out.append(bin(reg & 0b111).count("1") % 2)
        out.append(bin(reg & 0b101).count("1") % 2)
        state = reg >> 1
    return np.array(out, dtype=np.int8)


@program(lambda rng: (rng.integers(0, 3, size=12),), branches=True)
def run_length(a):
    """Run lengths and their inverse."""
    change = np.flatnonzero(np.diff(a)) + 1
    starts = np.concatenate(([0], change))
    lengths = np.diff(np.append(starts, len(a)))
    decoded = np.repeat(a[starts], lengths)
    assert (decoded == a).all()
    return list(zip(a[starts].tolist(), lengths.tolist()))


@program(lambda rng: (rng.integers(0, 4, size=10),), branches=True)
def lz78(data):
    """Compression by a dictionary of tuples."""
    dictionary, out, w = {(): 0}, [], ()
    for sym in data:
        wc = w + (int(sym),)
        if wc in dictionary:
            w = wc
        else:
            out.append((dictionary[w], int(sym)))
            dictionary[wc] = len(dictionary)
            w = ()
    return out, len(dictionary)


@program(lambda rng: (rng.dirichlet(np.ones(4)),))
def arithmetic_coding(p):
    """Arithmetic coding and decoding."""
    msg = [0, 2, 1, 3, 0]
    cum = np.concatenate([[0.0], np.cumsum(p)])
    low, high = 0.0, 1.0
    for s in msg:
        span = high - low
        low, high = low + span * cum[s], low + span * cum[s + 1]
    code = (low + high) / 2
    out = []
    x = code
    for _ in msg:
        s = int(np.searchsorted(cum, x, side="right") - 1)
        out.append(s)
        x = (x - cum[s]) / (cum[s + 1] - cum[s])
    return code, out


@program(lambda rng: (rng.integers(0, 256, size=(2, 3), dtype=np.uint8),))
def bit_planes(img):
    """Bit planes, Gray codes and counts of bits."""
    planes = np.unpackbits(img[..., None], axis=-1)
    gray = img ^ (img >> 1)
    pop = planes.sum(axis=-1)
    rebuilt = np.packbits(planes, axis=-1)[..., 0]
    np.testing.assert_array_equal(rebuilt, img)
    return planes[..., 0], gray, pop
