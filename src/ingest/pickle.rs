//! The part of Python's pickle format (docs.python.org, `pickletools`) that Graphite senders use: a
//! list of `(path, (timestamp, value))`, protocols 0 to 5.
//!
//! A general decoder builds whatever the bytes describe: values nested a hundred thousand deep end
//! the process. This decoder builds nothing deeper than a point.

use std::{collections::HashMap, rc::Rc};

/// The maximum depth of nested pairs: a point and its inner pair.
const DEPTH_MAX: u8 = 2;

/// A part of a point.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    Number(f64),
    Text(Rc<str>),
    Pair(Rc<(Self, Self)>, u8),
    /// Any other value.
    Other,
}

#[derive(Debug, Default)]
struct Reader<'a> {
    rest: &'a [u8],
    stack: Vec<Item>,
    /// The position of each open mark on the stack.
    marks: Vec<usize>,
    memo: HashMap<u32, Item>,
    points: Vec<Item>,
}

/// Decodes the entries of a pickled list.
///
/// # Errors
/// The bytes are truncated or are not such a list.
pub(super) fn read_list(bytes: &[u8]) -> Result<Vec<Item>, String> {
    let mut reader = Reader { rest: bytes, ..Reader::default() };
    loop {
        let at = bytes.len() - reader.rest.len();
        let code = reader.take(1).map(|code| code[0]);
        match code {
            Some(b'.') => return Ok(reader.points),
            Some(code) if reader.step(code).is_some() => {}
            _ => return Err(format!("the pickle cannot be read at byte {at}")),
        }
    }
}

impl<'a> Reader<'a> {
    fn step(&mut self, code: u8) -> Option<()> {
        match code {
            0x80 => drop(self.take(1)?),
            0x95 => drop(self.take(8)?),
            b'(' => self.marks.push(self.stack.len()),
            // The list itself is on the stack as a value that is not an entry.
            b']' | b')' | b'N' => self.stack.push(Item::Other),
            b'l' => {
                let entries = self.since_mark()?;
                self.points.extend(entries);
                self.stack.push(Item::Other);
            }
            b'a' => {
                let entry = self.stack.pop()?;
                self.points.push(entry);
            }
            b'e' => {
                let entries = self.since_mark()?;
                self.points.extend(entries);
            }
            b't' => {
                let parts = self.since_mark()?;
                self.stack.push(tuple(parts));
            }
            0x85..=0x87 => {
                let from = self.stack.len().checked_sub(usize::from(code - 0x84))?;
                let parts = self.stack.split_off(from);
                self.stack.push(tuple(parts));
            }
            b'p' | b'q' | b'r' | 0x94 => self.memoize(code)?,
            b'g' | b'h' | b'j' => {
                let key = self.key(code)?;
                self.stack.push(self.memo.get(&key)?.clone());
            }
            _ => {
                let item = self.scalar(code)?;
                self.stack.push(item);
            }
        }
        Some(())
    }

    fn scalar(&mut self, code: u8) -> Option<Item> {
        Some(match code {
            b'J' => Item::Number(f64::from(i32::from_le_bytes(self.array()?))),
            b'K' => Item::Number(f64::from(self.take(1)?[0])),
            b'M' => Item::Number(f64::from(u16::from_le_bytes(self.array()?))),
            b'G' => Item::Number(f64::from_be_bytes(self.array()?)),
            0x8a => {
                let length = usize::from(self.take(1)?[0]);
                whole_number(self.take(length)?)
            }
            0x88 => Item::Number(1.0),
            0x89 => Item::Number(0.0),
            b'I' | b'L' | b'F' => {
                let line = self.line()?.trim_end_matches('L');
                line.parse().map_or(Item::Other, Item::Number)
            }
            b'V' => Item::Text(self.line()?.into()),
            b'S' => Item::Text(self.line()?.trim_matches(['\'', '"']).into()),
            b'X' | b'T' | b'B' => {
                let length = u32::from_le_bytes(self.array()?) as usize;
                self.text(length)?
            }
            b'U' | b'C' | 0x8c => {
                let length = usize::from(self.take(1)?[0]);
                self.text(length)?
            }
            0x8d => {
                let length = usize::try_from(u64::from_le_bytes(self.array()?)).ok()?;
                self.text(length)?
            }
            _ => return None,
        })
    }

    fn memoize(&mut self, code: u8) -> Option<()> {
        let key = if code == 0x94 { self.memo.len() as u32 } else { self.key(code)? };
        let item = self.stack.last()?.clone();
        self.memo.insert(key, item);
        Some(())
    }

    /// Returns the number of a memo entry.
    fn key(&mut self, code: u8) -> Option<u32> {
        match code {
            b'p' | b'g' => self.line()?.parse().ok(),
            b'q' | b'h' => Some(u32::from(self.take(1)?[0])),
            _ => Some(u32::from_le_bytes(self.array()?)),
        }
    }

    fn since_mark(&mut self) -> Option<Vec<Item>> {
        let mark = self.marks.pop().filter(|mark| *mark <= self.stack.len())?;
        Some(self.stack.split_off(mark))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.first_chunk().copied()
    }

    fn line(&mut self) -> Option<&'a str> {
        let end = self.rest.iter().position(|byte| *byte == b'\n')?;
        let line = self.take(end + 1)?;
        std::str::from_utf8(&line[..end]).ok()
    }

    fn text(&mut self, length: usize) -> Option<Item> {
        let bytes = self.take(length)?;
        Some(std::str::from_utf8(bytes).map_or(Item::Other, |text| Item::Text(text.into())))
    }
}

fn tuple(parts: Vec<Item>) -> Item {
    let Ok([first, second]) = <[Item; 2]>::try_from(parts) else { return Item::Other };
    let depth = |item: &Item| if let Item::Pair(_, depth) = item { *depth } else { 0 };
    let depth_of_pair = depth(&first).max(depth(&second)) + 1;
    if depth_of_pair > DEPTH_MAX {
        Item::Other
    } else {
        Item::Pair(Rc::new((first, second)), depth_of_pair)
    }
}

/// Returns a whole number of up to eight bytes, in two's complement.
fn whole_number(bytes: &[u8]) -> Item {
    let mut word = [if bytes.last().is_some_and(|last| *last >= 0x80) { 0xff } else { 0 }; 8];
    match word.get_mut(..bytes.len()) {
        Some(part) => part.copy_from_slice(bytes),
        None => return Item::Other,
    }
    Item::Number(i64::from_le_bytes(word) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_nesting_and_repeated_texts_take_little_memory() {
        let mut lists = vec![0x80, 2];
        lists.extend(std::iter::repeat_n(b']', 400_000));
        lists.extend(std::iter::repeat_n(b'a', 399_999));
        lists.push(b'.');
        assert!(read_list(&lists).unwrap().iter().all(|item| *item == Item::Other));
        let mut pairs = b"]K\x01".to_vec();
        pairs.extend(b"K\x01\x86".repeat(200_000));
        pairs.extend(b"a.");
        assert_eq!(read_list(&pairs).unwrap().len(), 1);
        let mut texts = b"]X\x00\x00\x08\x00".to_vec();
        texts.extend(vec![b'x'; 0x8_0000]);
        texts.extend(b"q\x00a");
        texts.extend(b"h\x00a".repeat(100_000));
        texts.push(b'.');
        assert_eq!(read_list(&texts).unwrap().len(), 100_001);
    }

    #[test]
    fn every_protocol_of_python_yields_the_same_points() {
        // pickle.dumps([("a.b", (1795264496, 1.5)), ("a.b", (1795264506, 2)), ("c", (5.0, "7"))])
        let pickles: [&[u8]; 4] = [
            b"(lp0\x0a(Va.b\x0ap1\x0a(I1795264496\x0aF1.5\x0atp2\x0atp3\x0aa(g1\x0a(I1795264506\x0aI2\x0atp4\x0atp5\x0aa(Vc\x0ap6\x0a(F5.0\x0aV7\x0ap7\x0atp8\x0atp9\x0aa.",
            b"]q\x00((X\x03\x00\x00\x00a.bq\x01(J\xf0\x8f\x01kG?\xf8\x00\x00\x00\x00\x00\x00tq\x02tq\x03(h\x01(J\xfa\x8f\x01kK\x02tq\x04tq\x05(X\x01\x00\x00\x00cq\x06(G@\x14\x00\x00\x00\x00\x00\x00X\x01\x00\x00\x007q\x07tq\x08tq\x09e.",
            b"\x80\x02]q\x00(X\x03\x00\x00\x00a.bq\x01J\xf0\x8f\x01kG?\xf8\x00\x00\x00\x00\x00\x00\x86q\x02\x86q\x03h\x01J\xfa\x8f\x01kK\x02\x86q\x04\x86q\x05X\x01\x00\x00\x00cq\x06G@\x14\x00\x00\x00\x00\x00\x00X\x01\x00\x00\x007q\x07\x86q\x08\x86q\x09e.",
            b"\x80\x04\x95?\x00\x00\x00\x00\x00\x00\x00]\x94(\x8c\x03a.b\x94J\xf0\x8f\x01kG?\xf8\x00\x00\x00\x00\x00\x00\x86\x94\x86\x94h\x01J\xfa\x8f\x01kK\x02\x86\x94\x86\x94\x8c\x01c\x94G@\x14\x00\x00\x00\x00\x00\x00\x8c\x017\x94\x86\x94\x86\x94e.",
        ];
        let text = |text: &str| Item::Text(text.into());
        let pair = |first: Item, second: Item, depth| Item::Pair(Rc::new((first, second)), depth);
        let point = |path: &str, at: f64, value: Item| {
            pair(text(path), pair(Item::Number(at), value, 1), 2)
        };
        let expected = [
            point("a.b", 1_795_264_496.0, Item::Number(1.5)),
            point("a.b", 1_795_264_506.0, Item::Number(2.0)),
            point("c", 5.0, text("7")),
        ];
        for (index, pickle) in pickles.iter().enumerate() {
            assert_eq!(read_list(pickle).unwrap(), expected, "{index}");
        }
    }

    #[test]
    fn truncated_or_unknown_bytes_are_refused() {
        let complete = b"\x80\x02](X\x01\0\0\0aK\x05K\x06\x86\x86e.";
        let inner = Item::Pair(Rc::new((Item::Number(5.0), Item::Number(6.0))), 1);
        let point = Item::Pair(Rc::new((Item::Text("a".into()), inner)), 2);
        assert_eq!(read_list(complete).unwrap(), [point]);
        for end in 0..complete.len() {
            assert!(read_list(&complete[..end]).is_err(), "{end}");
        }
        for bytes in [&b"c__builtin__\nexec\n."[..], b"e.", b"\x86.", b"h\x07.", b"a."] {
            assert!(read_list(bytes).is_err(), "{bytes:?}");
        }
        assert_eq!(
            (whole_number(b"\xff"), whole_number(b"\0\x01")),
            (Item::Number(-1.0), Item::Number(256.0))
        );
    }
}
