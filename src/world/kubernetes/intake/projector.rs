//! Leaves out of JSON, while it arrives, what nobody reads. What is left out is never held in memory.
//!
//! The input may be cut anywhere. Only brackets, strings and separators are looked at: what is kept is parsed by its reader.

use memchr::memchr2;

/// What is kept of a value.
#[derive(Debug)]
pub(super) enum Keep {
    /// The whole value, as far as its object has room for it.
    Whole,
    /// The value if it has at most [`SHORT_BYTES`]. No valid value is longer, so a longer one counts as missing.
    Short,
    /// Of an object these members, of a list the same of each item, any other value as a whole. A name that ends in `*` stands for
    /// all names with this prefix.
    Members(&'static [(&'static str, Keep)]),
    /// The same for an object of the cluster, of which at most so many bytes are kept. If that is not all of it, the object has a
    /// member [`CUT`].
    Object(&'static [(&'static str, Keep)], usize),
}

/// The member of an object that was too large. No reader keeps a member of this name.
pub(super) const CUT: &str = "cut";

/// The longest value of a label or an annotation that is kept, in bytes, quotes included: a user name or a chart has less.
pub(super) const SHORT_BYTES: usize = 1024;

/// The room of an object for short values, in bytes: all annotations of an object have at most as much.
const ROOM_FOR_SHORT: usize = 256 << 10;

/// The longest name of a member that can be kept, in bytes.
const MAX_NAME_BYTES: usize = 512;

/// What an item takes besides its text, in bytes, so that a list of nothing fills up an object too.
const ITEM_BYTES: usize = 16;

/// The text is no JSON.
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
    /// The name of the member whose value comes next, as written, without quotes.
    name: Vec<u8>,
    /// A value that is kept, as far as it has arrived.
    value: Vec<u8>,
    out: Vec<u8>,
    /// The objects so far that were too large.
    cut: u64,
}

/// A container that is kept in parts.
#[derive(Debug)]
struct Frame {
    keep: &'static Keep,
    is_list: bool,
    is_empty: bool,
    /// Whether it is an object with room of its own.
    has_room: bool,
}

/// What may still be kept of an object, in bytes.
#[derive(Debug)]
struct Room {
    left: usize,
    left_for_short: usize,
    is_cut: bool,
}

#[derive(Debug)]
enum State {
    /// Before a value of the root, of a member or of an item. `None` for one that nobody reads.
    Value(Option<&'static Keep>),
    /// Before an item, or the end of a list.
    Item,
    /// Before the name of a member, or the end of an object.
    Member,
    /// In a name.
    Name { is_escaped: bool },
    /// Behind a name.
    Colon,
    /// In a value that is left out or kept as a whole.
    Scan(Scan),
    /// Behind a value.
    After,
}

/// A value whose end is sought.
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
    Whole,
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

    /// What is kept of the input so far and was not taken yet.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// How many objects were cut since the last call.
    pub(super) fn take_cut(&mut self) -> u64 {
        std::mem::take(&mut self.cut)
    }

    /// Reads the next part of the input.
    ///
    /// # Errors
    /// [`Malformed`] at a byte that no JSON has there.
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
                        // One more than can match.
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

    /// Takes a step at a byte outside of scalars, and returns whether the byte is used up.
    fn step(&mut self, byte: u8) -> Result<bool, Malformed> {
        match (&self.state, byte) {
            // An answer is an object.
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

    /// Begins a value at its first byte.
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
            (Some(Keep::Whole | Keep::Members(_) | Keep::Object(..)), _) => Copy::Whole,
            (Some(Keep::Short), _) => Copy::Short,
        };
        self.value.clear();
        let is_scalar = !matches!(byte, b'"' | b'{' | b'[');
        self.state = State::Scan(Scan { copy, depth: 0, in_string: false, is_escaped: false, is_scalar });
        Ok(false)
    }

    /// Opens a container of which parts are kept.
    fn open(&mut self, keep: &'static Keep, is_list: bool) {
        self.write_name();
        // What has room of its own takes none of the list that it is in.
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

    /// A value has ended.
    fn behind_value(&mut self) {
        if self.frames.is_empty() {
            self.out.push(b'\n');
            self.state = State::Value(Some(self.root));
        } else {
            self.state = State::After;
        }
    }

    /// What is kept of the member whose name was read.
    fn wanted(&self) -> Option<&'static Keep> {
        let members = match self.frames.last()?.keep {
            Keep::Members(members) | Keep::Object(members, _) => members,
            Keep::Whole | Keep::Short => return None,
        };
        let is_meant = |wanted: &str| match wanted.strip_suffix('*') {
            Some(prefix) => self.name.len() <= MAX_NAME_BYTES && self.name.starts_with(prefix.as_bytes()),
            None => self.name == wanted.as_bytes(),
        };
        members.iter().find(|(wanted, _)| is_meant(wanted)).map(|(_, keep)| keep)
    }

    /// Whether the innermost list takes another item. One without room of its own belongs to an object that may be full.
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
            Copy::Whole => self.rooms.last().map_or(0, |room| room.left),
        };
        if self.value.len() + bytes.len() <= limit {
            self.value.extend_from_slice(bytes);
            return;
        }
        self.value = Vec::new();
        if let State::Scan(scan) = &mut self.state {
            scan.copy = Copy::No;
        }
        if let Some(room) = self.rooms.last_mut().filter(|_| copy == Copy::Whole) {
            room.is_cut = true;
        }
    }

    /// Keeps a value that was read to its end.
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

    /// Writes what comes before a value: the comma, and the name in an object.
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
    /// Looks for the end of the value. Returns how many bytes belong to it, and whether it ends there.
    fn run(&mut self, input: &[u8]) -> (usize, bool) {
        if self.is_scalar {
            let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
            let end = input.iter().position(is_end);
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
