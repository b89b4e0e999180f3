//! Drops the parts of JSON that nobody reads while the text arrives, so that they are never in memory.
//!
//! The input may be split anywhere. The projector checks only brackets, strings and separators. Readers parse the kept values.

use memchr::memchr2;

/// The part of a value to keep.
#[derive(Debug)]
pub(super) enum Keep {
    /// The complete value, as far as its object has room.
    All,
    /// The value if it has at most [`SHORT_BYTES`]. No valid value is longer, so a longer one counts as missing.
    Short,
    /// These members of an object, and the same for each item of a list. Any other value is kept completely. A name that ends in
    /// `*` stands for all names with this prefix.
    Members(&'static [(&'static str, Keep)]),
    /// The same for an object of the cluster, with a limit in bytes. An object over the limit gets a member [`CUT`].
    Object(&'static [(&'static str, Keep)], usize),
}

/// The member that marks an object over its limit. No reader keeps a member of this name.
pub(super) const CUT: &str = "cut";

/// The longest kept value of a label or an annotation, in bytes, quotes included. User names and charts are shorter.
pub(super) const SHORT_BYTES: usize = 1024;

/// The room of an object for short values, in bytes. All annotations of an object have at most this size.
const ROOM_FOR_SHORT: usize = 256 << 10;

/// The longest name of a kept member, in bytes.
const MAX_NAME_BYTES: usize = 512;

/// The size of an item in addition to its text, in bytes, so that a list of empty items fills an object too.
const ITEM_BYTES: usize = 16;

/// The text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer is not JSON")]
pub(super) struct Malformed;

/// Reads JSON values one after the other.
#[derive(Debug)]
pub(super) struct Projector {
    root: &'static Keep,
    state: State,
    frames: Vec<Frame>,
    rooms: Vec<Room>,
    /// The name of the next value's member, as written, without quotes.
    name: Vec<u8>,
    /// The received part of a kept value.
    value: Vec<u8>,
    out: Vec<u8>,
    /// The number of objects over their limit so far.
    cut: u64,
}

/// A container that is kept in parts.
#[derive(Debug)]
struct Frame {
    keep: &'static Keep,
    is_list: bool,
    is_empty: bool,
    /// Whether this is an object with room of its own.
    has_room: bool,
}

/// The remaining room of an object, in bytes.
#[derive(Debug)]
struct Room {
    left: usize,
    left_for_short: usize,
    is_cut: bool,
}

#[derive(Debug)]
enum State {
    /// Before a value of the root, of a member or of an item. `None` for a value that nobody reads.
    Value(Option<&'static Keep>),
    /// Before an item, or the end of a list.
    Item,
    /// Before the name of a member, or the end of an object.
    Member,
    /// In a name.
    Name { is_escaped: bool },
    /// After a name.
    Colon,
    /// In a value that is dropped or kept completely.
    Scan(Scan),
    /// After a value.
    After,
}

/// A value whose end is not reached yet.
#[derive(Debug)]
struct Scan {
    copy: Copy,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    is_scalar: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copy {
    No,
    All,
    Short,
}

impl Projector {
    pub(super) fn new(root: &'static Keep) -> Self {
        Self {
            root,
            state: State::Value(Some(root)),
            frames: Vec::new(),
            rooms: Vec::new(),
            name: Vec::new(),
            value: Vec::new(),
            out: Vec::new(),
            cut: 0,
        }
    }

    /// Takes the kept part of the input so far.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// The number of objects over their limit since the last call.
    pub(super) fn take_cut(&mut self) -> u64 {
        std::mem::take(&mut self.cut)
    }

    /// Reads the next part of the input.
    ///
    /// # Errors
    /// [`Malformed`] at a byte that is not valid in JSON.
    pub(super) fn push(&mut self, mut input: &[u8]) -> Result<(), Malformed> {
        while let Some((&byte, rest)) = input.split_first() {
            if let State::Scan(scan) = &mut self.state {
                let (taken, is_done) = scan.run(input);
                let copied = &input[..taken];
                input = &input[taken..];
                let copy = scan.copy;
                self.copy(copy, copied);
                if is_done {
                    self.keep_value();
                }
                continue;
            }
            if let State::Name { is_escaped } = &mut self.state {
                input = rest;
                match byte {
                    b'"' if !*is_escaped => self.state = State::Colon,
                    byte => {
                        *is_escaped = byte == b'\\' && !*is_escaped;
                        // One byte more than any match has.
                        if self.name.len() <= MAX_NAME_BYTES {
                            self.name.push(byte);
                        }
                    }
                }
                continue;
            }
            if byte.is_ascii_whitespace() {
                input = rest;
                continue;
            }
            if self.step(byte)? {
                input = rest;
            }
        }
        Ok(())
    }

    /// Processes a byte outside of scalars, and returns whether the byte is consumed.
    fn step(&mut self, byte: u8) -> Result<bool, Malformed> {
        match (&self.state, byte) {
            // An answer is always an object.
            (State::Value(_), byte) if self.frames.is_empty() && byte != b'{' => Err(Malformed),
            (State::Value(keep), byte) => {
                let keep = *keep;
                self.begin(keep, byte)
            }
            (State::Item, b']') | (State::Member, b'}') => self.end().map(|()| true),
            (State::Item, byte) => {
                let is_taken = self.takes_item();
                let keep = self.frames.last().map(|frame| frame.keep).filter(|_| is_taken);
                self.name.clear();
                self.begin(keep, byte)
            }
            (State::Member, b'"') => {
                self.name.clear();
                self.state = State::Name { is_escaped: false };
                Ok(true)
            }
            (State::Colon, b':') => {
                self.state = State::Value(self.wanted());
                Ok(true)
            }
            (State::After, byte) => self.after(byte),
            _ => Err(Malformed),
        }
    }

    fn after(&mut self, byte: u8) -> Result<bool, Malformed> {
        match (self.frames.last().map(|frame| frame.is_list), byte) {
            (Some(true), b',') => self.state = State::Item,
            (Some(false), b',') => self.state = State::Member,
            (Some(true), b']') | (Some(false), b'}') => self.end()?,
            _ => return Err(Malformed),
        }
        Ok(true)
    }

    /// Starts a value at its first byte.
    fn begin(&mut self, keep: Option<&'static Keep>, byte: u8) -> Result<bool, Malformed> {
        if matches!(byte, b',' | b':' | b'}' | b']') {
            return Err(Malformed);
        }
        let in_list = self.frames.last().is_some_and(|frame| frame.is_list);
        let copy = match (keep, byte) {
            (None, _) => Copy::No,
            (Some(keep @ (Keep::Members(_) | Keep::Object(..))), b'{') => {
                self.open(keep, false);
                return Ok(true);
            }
            // A list in a list has no members.
            (Some(Keep::Members(_) | Keep::Object(..)), b'[') if in_list => Copy::No,
            (Some(keep @ (Keep::Members(_) | Keep::Object(..))), b'[') => {
                self.open(keep, true);
                return Ok(true);
            }
            (Some(Keep::All | Keep::Members(_) | Keep::Object(..)), _) => Copy::All,
            (Some(Keep::Short), _) => Copy::Short,
        };
        self.value.clear();
        let is_scalar = !matches!(byte, b'"' | b'{' | b'[');
        self.state = State::Scan(Scan { copy, depth: 0, in_string: false, is_escaped: false, is_scalar });
        Ok(false)
    }

    /// Opens a container that is kept in parts.
    fn open(&mut self, keep: &'static Keep, is_list: bool) {
        self.write_name();
        // A container with room of its own uses none of the room around it.
        if let (Keep::Members(_), Some(room)) = (keep, self.rooms.last_mut()) {
            room.left = room.left.saturating_sub(ITEM_BYTES + self.name.len());
        }
        let has_room = !is_list && matches!(keep, Keep::Object(..));
        if let (Keep::Object(_, limit), true) = (keep, has_room) {
            self.rooms.push(Room { left: *limit, left_for_short: ROOM_FOR_SHORT, is_cut: false });
        }
        self.out.push(if is_list { b'[' } else { b'{' });
        self.frames.push(Frame { keep, is_list, is_empty: true, has_room });
        self.state = if is_list { State::Item } else { State::Member };
    }

    /// Ends the innermost container.
    fn end(&mut self) -> Result<(), Malformed> {
        let frame = self.frames.pop().ok_or(Malformed)?;
        if frame.has_room && self.rooms.pop().is_some_and(|room| room.is_cut) {
            self.cut += 1;
            let comma = if frame.is_empty { "" } else { "," };
            self.out.extend(format!("{comma}\"{CUT}\":true").bytes());
        }
        self.out.push(if frame.is_list { b']' } else { b'}' });
        self.behind_value();
        Ok(())
    }

    /// Continues after the end of a value.
    fn behind_value(&mut self) {
        if self.frames.is_empty() {
            self.out.push(b'\n');
            self.state = State::Value(Some(self.root));
        } else {
            self.state = State::After;
        }
    }

    /// The part to keep of the member whose name was read.
    fn wanted(&self) -> Option<&'static Keep> {
        let members = match self.frames.last()?.keep {
            Keep::Members(members) | Keep::Object(members, _) => members,
            Keep::All | Keep::Short => return None,
        };
        let found = members.iter().find(|(wanted, _)| match wanted.strip_suffix('*') {
            Some(prefix) => self.name.len() <= MAX_NAME_BYTES && self.name.starts_with(prefix.as_bytes()),
            None => self.name == wanted.as_bytes(),
        });
        found.map(|(_, keep)| keep)
    }

    /// Whether the innermost list accepts another item. Without room of its own, an item uses the room of its object, which may be
    /// full.
    fn takes_item(&mut self) -> bool {
        let is_bounded = self.frames.last().is_some_and(|frame| !matches!(frame.keep, Keep::Object(..)));
        let Some(room) = self.rooms.last_mut().filter(|_| is_bounded) else { return true };
        let takes = room.left >= ITEM_BYTES;
        room.is_cut |= !takes;
        takes
    }

    fn copy(&mut self, copy: Copy, bytes: &[u8]) {
        let limit = match copy {
            Copy::No => return,
            Copy::Short => SHORT_BYTES,
            Copy::All => self.rooms.last().map_or(0, |room| room.left),
        };
        if self.value.len() + bytes.len() <= limit {
            self.value.extend_from_slice(bytes);
            return;
        }
        self.value = Vec::new();
        if let State::Scan(scan) = &mut self.state {
            scan.copy = Copy::No;
        }
        if let Some(room) = self.rooms.last_mut().filter(|_| copy == Copy::All) {
            room.is_cut = true;
        }
    }

    /// Keeps a complete value.
    fn keep_value(&mut self) {
        if !self.value.is_empty() {
            let bytes = self.value.len() + self.name.len() + ITEM_BYTES;
            let is_short = matches!(self.state, State::Scan(Scan { copy: Copy::Short, .. }));
            let has_room = self.rooms.last_mut().is_some_and(|room| {
                let left = if is_short { &mut room.left_for_short } else { &mut room.left };
                let remaining = left.checked_sub(bytes);
                *left = remaining.unwrap_or(*left);
                room.is_cut |= remaining.is_none();
                remaining.is_some()
            });
            if has_room {
                self.write_name();
                self.out.append(&mut self.value);
            }
        }
        self.behind_value();
    }

    /// Writes the text before a value: the comma, and the name in an object.
    fn write_name(&mut self) {
        let Some(frame) = self.frames.last_mut() else { return };
        if !std::mem::take(&mut frame.is_empty) {
            self.out.push(b',');
        }
        if !frame.is_list {
            self.out.push(b'"');
            self.out.extend_from_slice(&self.name);
            self.out.extend_from_slice(b"\":");
        }
    }
}

impl Scan {
    /// Searches for the end of the value. Returns the number of bytes that belong to the value, and whether it ends there.
    fn run(&mut self, input: &[u8]) -> (usize, bool) {
        if self.is_scalar {
            let end = input.iter().position(|byte| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace());
            return (end.unwrap_or(input.len()), end.is_some());
        }
        let mut at = 0;
        while let Some(&byte) = input.get(at) {
            if self.is_escaped {
                self.is_escaped = false;
            } else if self.in_string {
                let Some(next) = memchr2(b'"', b'\\', &input[at..]) else { return (input.len(), false) };
                at += next;
                self.is_escaped = input[at] == b'\\';
                self.in_string = self.is_escaped;
            } else {
                match byte {
                    b'"' => self.in_string = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
            }
            at += 1;
            if self.depth == 0 && !self.in_string {
                return (at, true);
            }
        }
        (at, false)
    }
}

#[cfg(test)]
mod tests;
