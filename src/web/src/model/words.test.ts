import { expect, it } from "vitest";
import {
  agoText,
  bytesText,
  countText,
  elapsedText,
  inText,
  lengthText,
  percentText,
} from "./words";

it("writes durations in the largest unit and the next one", () => {
  expect(lengthText(0.4)).toBe("0.4 ms");
  expect(lengthText(250)).toBe("250 ms");
  expect(lengthText(45_300)).toBe("45 s");
  expect(lengthText(3_600_000)).toBe("1 h");
  expect(lengthText(3_600_000 + 5000)).toBe("1 h");
  expect(lengthText(86_400_000 * 12 + 3_600_000 * 4)).toBe("12 d 4 h");
  expect(lengthText(86_400_000 * 112 + 3_600_000 * 4)).toBe("112 d");
});

it("writes durations from a second on with tenths", () => {
  expect([2.14, 250, 1440, 34_400, 150_000].map(elapsedText)).toEqual([
    "2.1 ms",
    "250 ms",
    "1.4 s",
    "34 s",
    "2 min",
  ]);
});

it("writes past and future times in one unit", () => {
  expect(agoText(-5)).toBe("now");
  expect(agoText(119_000)).toBe("1 min ago");
  expect(inText(3 * 3_600_000 + 1)).toBe("in 3 h");
  expect(inText(-1)).toBe("due");
});

it("writes numbers with two or three digits", () => {
  expect([0, 3.44, 9.97, 99.9].map(percentText)).toEqual(["0 %", "3.4 %", "10 %", "100 %"]);
  expect([0, 1023, 1536, 1024 ** 3 * 12].map(bytesText)).toEqual([
    "0 B",
    "1 KiB",
    "1.5 KiB",
    "12 GiB",
  ]);
  expect([999, 1234, 999_499, 1_200_000, 2.5e9].map(countText)).toEqual([
    "999",
    "1,234",
    "999,499",
    "1.2 M",
    "2.5 G",
  ]);
  expect(bytesText(null)).toBe("–");
});
