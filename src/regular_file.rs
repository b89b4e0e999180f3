//! Reads files that people and Kubernetes provide: policies, suites, certificates, keys. Only regular files are used, so that a
//! named pipe cannot hang the program. Each file is read completely, up to a limit. An error says what is wrong with the file.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// The mode of a file that [`open_own`] creates.
const OWN_MODE: u32 = 0o600;

/// Why a file cannot be read. It can be compared, so that a watch of the file notices a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unread {
    kind: io::ErrorKind,
    why: String,
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        Self { kind: error.kind(), why: error.to_string() }
    }
}

impl From<Unread> for io::Error {
    fn from(Unread { kind, why }: Unread) -> Self {
        Self::new(kind, why)
    }
}

/// Opens a regular file for reading. Follows links, because mounted ConfigMaps and Secrets consist of them.
///
/// # Errors
/// Errors of the system, and an error that [`is_irregular`] recognises if the path does not lead to a regular file.
fn open(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), OFlags::empty(), path).map_err(|error| explained(path, error))
}

/// Opens a file that belongs to this program, and creates it if it does not exist. The content stays. A link is an error, because
/// it could lead to a file of another program.
///
/// # Errors
/// Errors of the system, and an error that [`is_irregular`] recognises if the file is not regular.
pub(crate) fn open_own(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(OWN_MODE);
    open_with(&mut options, OFlags::NOFOLLOW, path).map_err(|error| {
        let is_link = error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
        if is_link { irregular("a symbolic link") } else { explained(path, error) }
    })
}

fn open_with(options: &mut OpenOptions, flags: OFlags, path: &Path) -> io::Result<File> {
    // Without NONBLOCK, opening a named pipe waits for its other end. Regular files ignore the flag.
    let file = options.custom_flags((flags | OFlags::NONBLOCK).bits().cast_signed()).open(path)?;
    let found = file.metadata()?.file_type();
    if found.is_file() { Ok(file) } else { Err(irregular(type_name(found))) }
}

/// Whether an error of this module says that a file is not regular.
pub(crate) fn is_irregular(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput
}

fn irregular(found: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is {found}, not a regular file"))
}

fn type_name(found: FileType) -> &'static str {
    match found {
        found if found.is_dir() => "a directory",
        found if found.is_fifo() => "a pipe",
        found if found.is_socket() => "a socket",
        _ => "a device",
    }
}

/// Reads a file of at most so many bytes.
///
/// # Errors
/// What is wrong with the file. The kind is [`io::ErrorKind::FileTooLarge`] if the file is longer.
pub(crate) fn read(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let size = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    let read = bytes.len() as u64;
    if read > max_bytes {
        let why = format!("it has {} bytes, more than the {} that are read", size.max(read), shown_size(max_bytes));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// Reads a text file of at most so many bytes.
///
/// # Errors
/// What is wrong with the file. The kind is [`io::ErrorKind::InvalidData`] or [`io::ErrorKind::FileTooLarge`] if the content is
/// wrong.
pub(crate) fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    let bytes = read(path, max_bytes)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, not_utf8(&error)))
}

/// `it is not UTF-8: byte 0xe9 in line 3, at byte 12 of the file`.
fn not_utf8(error: &std::string::FromUtf8Error) -> String {
    let (at, bytes) = (error.utf8_error().valid_up_to(), error.as_bytes());
    let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
    let byte = bytes.get(at).copied().unwrap_or_default();
    format!("it is not UTF-8: byte {at} of the file, in line {line}, is 0x{byte:02x}; save the file as UTF-8")
}

/// Replaces an error of the system with a clearer one.
fn explained(path: &Path, error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::NotFound {
        return match fs::read_link(path) {
            Ok(target) => {
                let why = format!("it is a link to {}, which does not exist", target.display());
                io::Error::new(error.kind(), why)
            }
            Err(_) => error,
        };
    }
    // A socket cannot even be opened.
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => irregular(type_name(found.file_type())),
        _ => error,
    }
}

fn shown_size(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) { format!("{} MiB", bytes >> 20) } else { format!("{bytes} bytes") }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType as NodeType, Mode, mknodat};

    use super::*;

    /// Creates a named pipe without a writer.
    fn make_pipe(path: &Path) {
        mknodat(CWD, path, NodeType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
    }

    #[test]
    fn an_error_says_what_is_wrong_with_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("good"), "a\u{e9}").unwrap();
        fs::write(at("latin"), b"kind: x\n# caf\xe9\n").unwrap();
        fs::write(at("utf16"), b"\xff\xfek\0").unwrap();
        fs::write(at("cut"), b"caf\xc3").unwrap();
        fs::write(at("full"), vec![b'x'; 1 << 20]).unwrap();
        fs::write(at("large"), vec![b'x'; (1 << 20) + 5]).unwrap();
        fs::create_dir(at("directory")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        symlink("dangling", at("twice")).unwrap();
        symlink("good", at("linked")).unwrap();
        make_pipe(&at("pipe"));
        symlink("pipe", at("linked-pipe")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        let _listener = UnixListener::bind(at("socket")).unwrap();
        let read = |name: &str| read_text(&at(name), 1 << 20).map_err(|error| (error.kind(), error.to_string()));
        assert_eq!(read("good").unwrap(), "a\u{e9}");
        assert_eq!(read("linked").unwrap(), "a\u{e9}");
        assert_eq!(read("full").unwrap().len(), 1 << 20);
        for (name, kind, wanted) in [
            ("latin", io::ErrorKind::InvalidData, "byte 13 of the file, in line 2, is 0xe9"),
            ("utf16", io::ErrorKind::InvalidData, "byte 0 of the file, in line 1, is 0xff"),
            ("cut", io::ErrorKind::InvalidData, "byte 3 of the file"),
            ("large", io::ErrorKind::FileTooLarge, "it has 1048581 bytes, more than the 1 MiB"),
            ("directory", io::ErrorKind::InvalidInput, "it is a directory, not a regular file"),
            ("pipe", io::ErrorKind::InvalidInput, "it is a pipe, not"),
            ("linked-pipe", io::ErrorKind::InvalidInput, "it is a pipe, not"),
            ("zero", io::ErrorKind::InvalidInput, "it is a device, not"),
            ("socket", io::ErrorKind::InvalidInput, "it is a socket, not"),
            ("dangling", io::ErrorKind::NotFound, "a link to nowhere, which does not exist"),
            ("twice", io::ErrorKind::NotFound, "a link to dangling, which does not exist"),
            ("missing", io::ErrorKind::NotFound, "No such file"),
        ] {
            let (found, why) = read(name).unwrap_err();
            assert!(found == kind && why.contains(wanted), "{name}: {found:?} {why}");
        }
    }

    #[test]
    fn an_own_file_is_created_private_and_never_emptied() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        open_own(&at("lock")).unwrap();
        assert_eq!(fs::metadata(at("lock")).unwrap().permissions().mode() & 0o777, OWN_MODE);
        fs::write(at("lock"), "kept").unwrap();
        open_own(&at("lock")).unwrap();
        assert_eq!(fs::read_to_string(at("lock")).unwrap(), "kept");

        fs::write(at("precious"), "precious").unwrap();
        symlink("precious", at("link")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        fs::create_dir(at("directory")).unwrap();
        make_pipe(&at("pipe"));
        for (name, wanted) in [
            ("link", "it is a symbolic link"),
            ("dangling", "it is a symbolic link"),
            ("directory", "it is a directory"),
            ("pipe", "it is a pipe"),
        ] {
            let error = open_own(&at(name)).unwrap_err();
            assert!(is_irregular(&error) && error.to_string().contains(wanted), "{name}: {error}");
        }
        assert_eq!(fs::read_to_string(at("precious")).unwrap(), "precious");
        assert!(!at("nowhere").exists());
    }
}
