#!/usr/bin/env python3
"""Reads a segment as src/store/FORMAT.md describes it, without any of Granary's code, and prints
each cell: series, Unix ms of its slot, n, first_at, last_at, and the bits of sum, min, max, first,
last and m2 in hexadecimal. Cells of histograms have first, last and total instead: schema, hint, the
bits of threshold, zero bucket, count and sum, the bounds, and the buckets. Checksums are ignored.

usage: tests/sealed_reader.py SEGMENT
"""

import math
import struct
import sys

M64 = (1 << 64) - 1
HISTOGRAMS = 64 << 31


def i64(value):
    value &= M64
    return value - (1 << 64) if value >> 63 else value


def unzigzag(value):
    return i64(value >> 1 ^ -(value & 1))


def bits_of(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def ordered(value):
    bits = bits_of(value)
    if not bits >> 63:
        return bits
    size = bits & (1 << 63) - 1
    return -size if size else -(1 << 63)


def unordered(place):
    place = i64(place)
    bits = place if place >= 0 else (-place & M64) | 1 << 63
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def divided(number, by):
    """Division by IEEE 754, also by zero."""
    if by:
        return number / by
    sign = (bits_of(number) ^ bits_of(by)) >> 63
    return float("nan") if number == 0 or number != number else float("-inf" if sign else "inf")


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        return self.data[self.at - count:self.at]

    def byte(self):
        return self.take(1)[0]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value & M64

    def zigzag(self):
        return unzigzag(self.varint())

    def double(self):
        return struct.unpack("<d", self.take(8))[0]

    def packed(self, count, width):
        number = int.from_bytes(self.take((count * width + 7) // 8), "little")
        return [number >> i * width & (1 << width) - 1 for i in range(count)]

    def stream(self, count):
        mode = self.byte()
        if mode == 4:
            there = self.packed(count, 1)
            rest = iter(self.stream(sum(there)))
            return [next(rest) if bit else 0 for bit in there]
        width = self.byte()
        base = None if mode & 1 else self.zigzag()
        patches = high = 0
        if mode & 2:
            patches, high = self.varint(), self.byte()
        numbers = self.packed(count, width)
        if patches:
            places = self.packed(patches, (count - 1).bit_length())
            for place, bits in zip(places, self.packed(patches, high)):
                numbers[place] |= bits << width
        return [unzigzag(n) if base is None else i64(base + n) for n in numbers]


def read_times(r, slots, first):
    mode = r.byte()
    there = list(range(slots)) if mode & 1 else [i for i, bit in enumerate(r.packed(slots, 1)) if bit]
    base = first if mode & 2 else {}
    columns = [r.stream(len(there)) if mode & bit else [0] * len(there) for bit in (4, 8, 16)]
    times = {}
    for slot, n, begin, length in zip(there, *columns):
        own = base.get(slot, (0, 0, 0))
        begin += own[1]
        times[slot] = ((n + own[0]) % 2**32, begin % 2**32, (begin + own[2] - own[1] + length) % 2**32)
    return times


def read_block(r, times, width):
    how, shift, mask = r.byte(), r.byte(), r.byte()
    power, base, count = how & 7, r.zigzag(), len(times)
    has_raw = mask >> 7

    def double(number):
        number = i64(number << shift)
        return unordered(number) if power == 7 else number / 10.0**power

    def next_stream(count=count):
        nonlocal mask
        is_there, mask = mask & 1, mask >> 1
        return r.stream(count) if is_there else [0] * count

    passed = r.varint() if how & 8 else 0
    steps, lengths = next_stream(), next_stream()
    ends, before = [], base
    for step, length in zip(steps, lengths):
        first = step if not how & 8 and how & 16 else i64(before + step)
        before = i64(first + length)
        ends.append((first, before))
    doubles = [(double(first), double(last)) for first, last in ends]
    if how & 8:
        columns = read_counter(r, how, has_raw, next_stream, steps, lengths, doubles, double, base,
                               passed, times, width)
        moments = [0.0] * count
    else:
        factor = 1.0 if power == 7 else 10.0**power / (1 << shift)
        *columns, moments = read_gauge(how, next_stream, ends, doubles, double, power, times, factor)
    return [(*values, *own, m2) for values, own, m2 in zip(zip(*columns), doubles, moments)]


def read_gauge(how, next_stream, ends, doubles, double, power, times, factor):
    low = [double(i64(min(own) - off)) for own, off in zip(ends, next_stream())]
    high = [double(i64(max(own) + off)) for own, off in zip(ends, next_stream())]
    rests, ulps, sums = next_stream(), next_stream(), []
    for (n, *_), own, (first, last), rest, off in zip(times.values(), ends, doubles, rests, ulps):
        if power == 7:
            likely = n * (first + last) / 2.0
            likely = first if n == 1 or likely != likely else likely
        else:
            likely = double(i64((i64(i64(own[0] + own[1]) * n) >> 1) + rest))
        sums.append(unordered(ordered(likely) + off))
    moments = []
    for (n, *_), number in zip(times.values(), next_stream()):
        if how & 32:
            moments.append(unordered(number << 18))
        else:
            moments.append(number / (factor * factor * n) if number else 0.0)
    return sums, low, high, moments


def read_counter(r, how, has_raw, next_stream, steps, lengths, doubles, double, base, passed, times,
                 width):
    def increase(value, before):
        return value if value < before else value - before

    def per_second(amount, ms):
        rate = divided(amount, ms / 1000.0)
        return 0.0 if rate != rate else rate

    known, before, last_time = [], double(base), None
    for (slot, (n, begin, end)), (first, last) in zip(times.items(), doubles):
        passed = passed if last_time is None else slot * width + begin - last_time
        last_time = slot * width + end
        amount = increase(first, before)
        rates, total = [per_second(amount, passed)] * 2, amount
        if n > 1:
            total += increase(last, first)
        if n == 2:
            second = per_second(increase(last, first), end - begin)
            rates = [second if second < rates[0] else rates[0], second if second > rates[1] else rates[1]]
        whole = passed + end - begin
        known.append((n, 0.0 if total != total else total, rates, abs(whole) // max(n, 1) * (1 if whole >= 0 else -1)))
        before = last
    sums = [unordered(ordered(own[1]) + off) for own, off in zip(known, next_stream())]
    sides = []
    for side in (0, 1):
        flags, rates = how >> side, [own[2][side] for own in known]
        numbers = next_stream()
        is_rounded = flags & 80 == 64
        if not flags & 80:
            next_stream(0)
            sides.append([unordered(ordered(rate) + off) for rate, off in zip(rates, numbers)])
            continue
        pairs = sum(number != 0 for number in numbers)
        millis = iter(next_stream(pairs))
        rounded = iter(r.stream(pairs) if is_rounded and pairs else [])
        for i, number in enumerate(numbers):
            if number:
                n, _, _, step = known[i]
                off = number - 1 if number > 0 else number
                within = abs(lengths[i]) // max(n - 1, 1) * (1 if lengths[i] >= 0 else -1)
                bound = steps[i] if n < 2 else (min, max)[side](steps[i], within)
                amount = off if flags & 80 == 80 else bound + off if side else bound - off
                amount = double(i64(amount))
                if is_rounded:
                    last = doubles[i][1]
                    unit = math.ulp(last) if abs(last) < sys.float_info.max else 0.0
                    amount = last - (last - amount) + next(rounded) * unit
                rates[i] = per_second(amount, next(millis) + step)
        sides.append(rates)
    for rates in sides if has_raw else []:
        for _ in range(r.varint()):
            place = r.varint()
            rates[place] = struct.unpack("<d", r.take(8))[0]
    return sums, *sides


def read_form(r):
    flags, schema = r.byte(), (r.byte() ^ 128) - 128
    bounds = [r.double() for _ in range(r.varint())] if schema == -53 else []
    threshold, sides = r.double() if flags & 1 else 2.0**-128, []
    for _ in range(2):
        side, after = [], 0
        for _ in range(r.varint()):
            side.append(after + r.zigzag())
            after = side[-1] + 1
        sides.append(side)
    return schema, threshold, bounds, sides


class Scale:
    def __init__(self, power, shift):
        self.power, self.shift = power, shift

    def double(self, number):
        number = i64(number << self.shift)
        return unordered(number) if self.power == 7 else number / 10.0**self.power

    def number(self, double):
        if self.power == 7:
            return ordered(double) >> self.shift
        scaled = double * 10.0**self.power
        scaled += math.copysign(0.5, scaled)
        if scaled != scaled:
            return 0
        limits = -(2**63), 2**63 - 1
        number = limits[scaled > 0] if abs(scaled) >= 2.0**63 else int(scaled)
        return number >> self.shift


def read_column(r, mode, scale, cells, near=None):
    mask = r.byte()
    base = r.zigzag() if mask & 8 else 0
    streams = []
    for i in range(3):
        count = sum(has[i] for _, has in cells)
        streams.append(iter(r.stream(count) if mask >> i & 1 else [0] * count))
    column, before = [], base
    for at, (n, has) in enumerate(cells):
        values, start = [0.0] * 3, scale.double(before)
        if near:
            for i in range(3):
                if has[i]:
                    values[i] = scale.double(i64(scale.number(near[at][i]) + next(streams[i])))
            column.append(values)
            continue
        if has[0]:
            before = i64((0 if mode == 2 else before) + next(streams[0]))
            values[0] = scale.double(before)
        if has[1]:
            before = i64(before + next(streams[1]))
            values[1] = scale.double(before)
        if has[2]:
            likely = 0.0
            if all(has):
                likely = values[1] if n == 1 else n * (values[0] + values[1]) / 2.0
                likely = values[1] - start if mode == 0 else likely
            likely = scale.number(0.0 if likely != likely else likely)
            values[2] = scale.double(i64(likely + next(streams[2])))
        column.append(values)
    return column


def read_histograms(r, times):
    found, left = [], list(times.values())
    while left:
        count, _ = r.varint(), r.varint()
        part, left = left[:count], left[count:]
        how, shift = r.byte(), r.byte()
        mode, counts, sums = how & 3, Scale(how >> 2, shift), Scale(r.byte(), r.byte())
        forms = [read_form(r) for _ in range(r.varint())]
        k = len(forms)
        shapes = r.stream(count) if k > 1 else [0] * count
        shapes = [(shape // k // k, shape // k % k, shape % k) for shape in shapes]
        hints = [(hint >> 4 & 3, hint >> 2 & 3, hint & 3) for hint in r.stream(count)]
        cells = [[None] * 3 for _ in range(count)]
        for index, (schema, threshold, bounds, sides) in enumerate(forms):
            has = [(n, (shape[0] == index and n > 0, shape[1] == index and n > 0, shape[2] == index))
                   for (n, _, _), shape in zip(part, shapes)]
            columns = [read_column(r, mode, counts if i else sums, has) for i in range(2 + sum(map(len, sides)))]
            near = []
            for at in range(count):
                totals = [0.0] * 3
                for column in columns[1:]:
                    totals = [total + value for total, value in zip(totals, column[at])]
                near.append(totals)
            columns.append(read_column(r, mode, counts, has, near))
            for at in range(count):
                for i in range(3):
                    if has[at][1][i]:
                        numbers = [column[at][i] for column in columns]
                        buckets = zip("+" * len(sides[0]) + "-" * len(sides[1]), sides[0] + sides[1], numbers[2:-1])
                        cells[at][i] = (schema, hints[at][i], threshold, numbers[1], numbers[-1], numbers[0], bounds,
                                        [(side, bucket, value) for side, bucket, value in buckets if value])
        found += cells
    return found


def shown(histogram):
    schema, hint, *numbers, bounds, buckets = histogram
    bits = [f"{bits_of(number):016x}" for number in numbers]
    bounds = ",".join(f"{bits_of(bound):016x}" for bound in bounds)
    buckets = ",".join(f"{side}{bucket}:{bits_of(value):016x}" for side, bucket, value in buckets)
    return f"{schema} {hint} {' '.join(bits)} [{bounds}] [{buckets}]"


def blocks(data):
    """For each series and span: its id (plus 2^37 for histograms), the start of the span, slot width,
    the times of its slots, the bytes of its block, and those of the tile's head."""
    magic, version, start, width, index, count, _, _ = struct.unpack("<8s7Q", data[-64:])
    assert magic == b"granseal" and version in (1, 2)
    for at in range(index, index + count * 24, 24):
        seconds, row, offset, length, slots = struct.unpack("<IIQII", data[at:at + 24])
        r = Reader(data[offset:])
        lanes = [lane for lane in range(64) if r.data[lane // 8] >> lane % 8 & 1]
        r.take(8)
        times = []
        for _ in range(r.byte()):
            times.append(read_times(r, slots, times[0] if times else {}))
        sizes = [(lane, r.byte() if len(times) > 1 else 0, r.varint()) for lane in lanes]
        block = length
        for lane, shared, size in sizes:
            begin = start + seconds * 1000
            yield row * 64 + lane, begin, width, times[shared], r.data[block:block + size], r.data[:length]
            block += size


def main():
    for series, begin, width, times, block, _ in blocks(open(sys.argv[1], "rb").read()):
        if series >= HISTOGRAMS:
            for (slot, own), values in zip(times.items(), read_histograms(Reader(block), times)):
                histograms = " | ".join(shown(value) for value in values if value)
                print(series - HISTOGRAMS, begin + slot * width, *own, histograms)
            continue
        for (slot, own), values in zip(times.items(), read_block(Reader(block), times, width)):
            bits = (f"{bits_of(value):016x}" for value in values)
            print(series, begin + slot * width, *own, *bits)


if __name__ == "__main__":
    main()
