/** The rules of passwords that the page checks before it sends one. Pure. */

export const PASSWORD_LENGTH_MIN = 12;

/** The first error of a new password; `undefined` without errors. The daemon checks the rest. */
export function passwordFault(password: string, repeated: string): string | undefined {
  if (Array.from(password).length < PASSWORD_LENGTH_MIN) {
    return `The password needs ${PASSWORD_LENGTH_MIN} characters or more.`;
  }
  return password === repeated ? undefined : "The two passwords differ.";
}

const LETTERS = "abcdefghjkmnpqrstvwxyz0123456789";

/** A password of four groups of five letters and digits: 100 random bits from `random` bytes. */
export function passwordFrom(random: Uint8Array): string {
  const letters = Array.from(random, (byte) => LETTERS[byte % LETTERS.length] ?? "").join("");
  return letters.match(/.{1,5}/g)?.join("-") ?? "";
}
